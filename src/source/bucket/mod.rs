//! Buckets that speak S3.

pub(crate) mod bucket_view;
pub(crate) mod objects;
mod pages;
mod s3;
