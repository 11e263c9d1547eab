//! What lies in a bucket, with what the source makes of it: as `tree` and `survey` say it of folders.

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

/// Lists the whole bucket. Ends early when nobody listens.
pub async fn list_taken(bucket: &Bucket, source: &Source, to: &Sender<Vec<TraversedItem>>) {
    let told = |listed| match listed {
        Listed::Object(object) => match chosen(source, &object.path) {
            FilterResult::Taken => Some(vec![TraversedItem::File(object.path, object.stamp)]),
            FilterResult::PassedOver(_) => None,
        },
        Listed::Trouble(words) => Some(vec![TraversedItem::Trouble(words)]),
    };
    each(bucket, told, to).await;
}

/// Lists the whole bucket, and what is passed over too. Ends early when nobody listens.
pub async fn list_all(bucket: &Bucket, source: &Source, to: &Sender<Sighting>) {
    let told = |listed| match listed {
        Listed::Object(object) => Some(match chosen(source, &object.path) {
            FilterResult::Taken => Sighting::Taken(object.path, object.stamp),
            FilterResult::PassedOver(rule) => Sighting::PassedOver(object.path, rule),
        }),
        Listed::Trouble(words) => Some(Sighting::Trouble(words)),
    };
    each(bucket, told, to).await;
}

/// Whether the source takes an object.
fn chosen(source: &Source, path: &RelPath) -> FilterResult {
    filter_path(source, Path::new(OsStr::from_bytes(path.as_bytes())), EntryKind::File)
}

enum Listed {
    Object(Object),
    Trouble(String),
}

/// Hands over what `told` makes of each, until nobody listens.
async fn each<T>(bucket: &Bucket, told: impl Fn(Listed) -> Option<T>, to: &Sender<T>) {
    let mut pages = match bucket.pages("") {
        Ok(pages) => pages,
        Err(why) => return say(to, told(Listed::Trouble(format!("the bucket {why}")))).await,
    };
    loop {
        let page = match pages.next().await {
            Ok(Some(page)) => page,
            Ok(None) => return,
            Err(error) => {
                let why = words(&error);
                let words = format!("the listing of the bucket was interrupted: {why}; the next scan continues");
                return say(to, told(Listed::Trouble(words))).await;
            }
        };
        let odd = page.undecodable_key.map(|key| Listed::Trouble(unspeakable(&key)));
        let objects = page.objects.iter().filter_map(|meta| bucket.object(meta)).map(Listed::Object);
        for one in odd.into_iter().chain(objects).filter_map(&told) {
            if to.send(one).await.is_err() {
                return;
            }
        }
    }
}

async fn say<T>(to: &Sender<T>, last: Option<T>) {
    if let Some(last) = last {
        to.send(last).await.ok();
    }
}

fn unspeakable(key: &str) -> String {
    let key = RelPath::new(key.as_bytes()).escaped();
    format!(
        "{key}: ignored: scribed cannot request a key with an empty part, a single dot or a control character; \
         rename the object"
    )
}
