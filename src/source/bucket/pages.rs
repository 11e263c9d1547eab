//! The objects of a bucket, page by page: no more than a page is ever in memory. An object whose key cannot be
//! asked for is named and passed by, and hides no other.

use object_store::aws::AmazonS3;
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::{Error, ObjectMeta, path};
use std::sync::Arc;

/// Objects of a page at most: as many as S3 gives.
const PAGE: usize = 1_000;

/// A page of a listing.
#[derive(Debug, Default)]
pub struct ObjectPage {
    /// In the order of their keys.
    pub objects: Vec<ObjectMeta>,
    /// A key that cannot be asked for: with an empty part, a dot alone or a control character in it.
    pub undecodable_key: Option<String>,
}

/// A listing under way.
pub struct ObjectPages {
    client: Arc<AmazonS3>,
    start: String,
    size: usize,
    next: Next,
}

/// Where the next page begins.
enum Next {
    First,
    /// Where the server says.
    Token(String),
    Behind(String),
    None,
}

impl ObjectPages {
    /// Of all keys that begin like this.
    pub fn new(client: Arc<AmazonS3>, start: String) -> Self {
        Self { client, start, size: PAGE, next: Next::First }
    }

    /// With so many objects a page, 1 or more.
    #[must_use]
    pub fn with_page_size(self, size: usize) -> Self {
        Self { size, ..self }
    }

    /// The next page; `None` behind the last one.
    ///
    /// # Errors
    /// What the server says; then the same page may be asked for again.
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
                // The whole page is refused for one key: it is come nearer to, until it is alone.
                Err(Error::InvalidPath { .. }) if self.size > 1 => self.size /= 2,
                Err(Error::InvalidPath { source }) => {
                    let key = odd_key(&source).filter(|key| behind.as_ref() != Some(key));
                    let Some(key) = key else { return Err(Error::InvalidPath { source }) };
                    self.next = Next::Behind(key.clone());
                    return Ok(Some(ObjectPage { objects: Vec::new(), undecodable_key: Some(key) }));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

fn odd_key(error: &path::Error) -> Option<String> {
    match error {
        path::Error::EmptySegment { path } | path::Error::BadSegment { path, .. } => Some(path.clone()),
        _ => None,
    }
}
