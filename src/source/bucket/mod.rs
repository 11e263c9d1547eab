//! Buckets that speak S3.

pub mod bucket_view;
pub mod objects;
pub mod pages;
pub mod s3;
