//! S3 buckets as sources.

pub(crate) mod bucket_view;
pub(crate) mod objects;
mod pages;
mod s3;
