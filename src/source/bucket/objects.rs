//! Lists the objects of a bucket and applies the source's filter to them, as `traverse` and `inventory` do for folders.

use crate::config::model::Source;
use crate::domain::path::RelPath;
use crate::source::bucket::bucket_view::{Bucket, Object};
use crate::source::bucket::s3::words;
use crate::source::filter::rules::{EntryKind, FilterResult, filter_path};
use crate::source::scan::inventory::Sighting;
use crate::source::scan::traverse::TraversedItem;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tokio::sync::mpsc::Sender;

/// Sends the objects that the source takes. Returns early when the receiver is closed.
pub async fn list_taken(bucket: &Bucket, source: &Source, to: &Sender<Vec<TraversedItem>>) {
    let convert = |listed| match listed {
        Listed::Object(object) => match filter_object(source, &object.path) {
            FilterResult::Taken => Some(vec![TraversedItem::File(object.path, object.stamp)]),
            FilterResult::PassedOver(_) => None,
        },
        Listed::Trouble(words) => Some(vec![TraversedItem::Trouble(words)]),
    };
    send_listing(bucket, convert, to).await;
}

/// Sends all objects, with those that the filter passes over. Returns early when the receiver is closed.
pub async fn list_all(bucket: &Bucket, source: &Source, to: &Sender<Sighting>) {
    let convert = |listed| match listed {
        Listed::Object(object) => Some(match filter_object(source, &object.path) {
            FilterResult::Taken => Sighting::Taken(object.path, object.stamp),
            FilterResult::PassedOver(rule) => Sighting::PassedOver(object.path, rule),
        }),
        Listed::Trouble(words) => Some(Sighting::Trouble(words)),
    };
    send_listing(bucket, convert, to).await;
}

fn filter_object(source: &Source, path: &RelPath) -> FilterResult {
    filter_path(source, Path::new(OsStr::from_bytes(path.as_bytes())), EntryKind::File)
}

enum Listed {
    Object(Object),
    Trouble(String),
}

/// Lists the bucket and sends what `convert` makes of each entry, until the receiver is closed.
async fn send_listing<T>(bucket: &Bucket, convert: impl Fn(Listed) -> Option<T>, to: &Sender<T>) {
    let mut pages = match bucket.pages("") {
        Ok(pages) => pages,
        Err(why) => return send_last(to, convert(Listed::Trouble(format!("the bucket {why}")))).await,
    };
    loop {
        let page = match pages.next().await {
            Ok(Some(page)) => page,
            Ok(None) => return,
            Err(error) => {
                let why = words(&error);
                let words = format!("the listing of the bucket was interrupted: {why}; the next scan continues");
                return send_last(to, convert(Listed::Trouble(words))).await;
            }
        };
        let undecodable = page.undecodable_key.map(|key| Listed::Trouble(undecodable_key_problem(&key)));
        let objects = page.objects.iter().filter_map(|meta| bucket.object(meta)).map(Listed::Object);
        for item in undecodable.into_iter().chain(objects).filter_map(&convert) {
            if to.send(item).await.is_err() {
                return;
            }
        }
    }
}

async fn send_last<T>(to: &Sender<T>, last: Option<T>) {
    if let Some(last) = last {
        to.send(last).await.ok();
    }
}

fn undecodable_key_problem(key: &str) -> String {
    let key = RelPath::new(key.as_bytes()).escaped();
    format!(
        "{key}: ignored: scribed cannot request a key with an empty part, a single dot or a control character; \
         rename the object"
    )
}
