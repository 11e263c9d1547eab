//! Pages through the objects of a bucket: at most one page is in memory. An object whose key cannot be requested is
//! reported and skipped, and does not hide others.

use object_store::aws::AmazonS3;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::{Error, ObjectMeta, path};
use std::sync::Arc;

/// The largest number of objects in a page: the limit of S3.
const PAGE: usize = 1_000;

/// A page of a listing.
#[derive(Debug, Default)]
pub struct ObjectPage {
    /// Sorted by key.
    pub objects: Vec<ObjectMeta>,
    /// A key that cannot be requested: with an empty part, a single dot or a control character.
    pub undecodable_key: Option<String>,
}

/// A listing in progress.
pub struct ObjectPages {
    client: Arc<AmazonS3>,
    start: String,
    size: usize,
    next: Next,
}

/// Where the next page begins.
enum Next {
    First,
    /// At the continuation token that the server gave.
    Token(String),
    Behind(String),
    None,
}

impl ObjectPages {
    /// Lists all keys that begin with `start`.
    pub fn new(client: Arc<AmazonS3>, start: String) -> Self {
        Self { client, start, size: PAGE, next: Next::First }
    }

    /// Sets the size of the first page, 1 or more objects. Later pages grow.
    #[must_use]
    pub fn with_page_size(self, size: usize) -> Self {
        Self { size, ..self }
    }

    /// Fetches the next page. Returns `None` after the last one.
    ///
    /// # Errors
    /// The error of the server; the next call requests the same page again.
    pub async fn next(&mut self) -> Result<Option<ObjectPage>, Error> {
        loop {
            let (token, behind) = match &self.next {
                Next::None => return Ok(None),
                Next::First => (None, None),
                Next::Token(token) => (Some(token.clone()), None),
                Next::Behind(key) => (None, Some(key.clone())),
            };
            let options = PaginatedListOptions {
                page_token: token,
                offset: behind.clone(),
                max_keys: Some(self.size),
                ..PaginatedListOptions::default()
            };
            match self
                .client
                .list_paginated(Some(&self.start).filter(|start| !start.is_empty()).map(String::as_str), options)
                .await
            {
                Ok(page) => {
                    self.next = page.page_token.map_or(Next::None, Next::Token);
                    self.size = (self.size * 2).min(PAGE);
                    return Ok(Some(ObjectPage { objects: page.result.objects, undecodable_key: None }));
                }
                // One key makes the whole page fail: the page is halved until it holds that key alone.
                Err(Error::InvalidPath { .. }) if self.size > 1 => self.size /= 2,
                Err(Error::InvalidPath { source }) => {
                    let key = undecodable_key(&source).filter(|key| behind.as_ref() != Some(key));
                    let Some(key) = key else { return Err(Error::InvalidPath { source }) };
                    self.next = Next::Behind(key.clone());
                    return Ok(Some(ObjectPage { objects: Vec::new(), undecodable_key: Some(key) }));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

fn undecodable_key(error: &path::Error) -> Option<String> {
    match error {
        path::Error::EmptySegment { path } | path::Error::BadSegment { path, .. } => Some(path.clone()),
        _ => None,
    }
}
