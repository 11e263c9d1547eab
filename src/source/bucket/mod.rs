//! S3 buckets as sources. Start reading at `bucket_view.rs`.

pub(crate) mod bucket_view;
pub(crate) mod objects;
mod pages;
mod s3;
