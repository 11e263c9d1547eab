//! Copies among what would be sent: each content is bought once. How far files are read for that: those of a
//! size that no other one has, not at all; of others a few pieces; and the whole only where a job of the queue
//! has a file of that size, since what was bought is known by its whole content.

use crate::cli::failure::Failure;
use crate::cli::plan::Queue;
use crate::config::meant::Source;
use crate::control::forecast::Forecast;
use crate::domain::job::{Job, JobKey, Stamp};
use crate::domain::names::{Hash, JobId, Timestamp};
use crate::domain::token::Order;
use crate::media::measured::{Fact, Measured};
use crate::pipeline::making;
use crate::source::folder::full_path;
use crate::source::likeness::likeness;
use crate::source::stamp::hash;
use std::collections::HashSet;
use std::path::Path;

/// The sizes that more than one file has.
#[derive(Debug, Default)]
pub struct Sizes {
    all: Vec<u64>,
}

impl Sizes {
    /// Counts a file.
    pub fn add(&mut self, size: u64) {
        self.all.push(size);
    }

    /// How many files were counted.
    pub fn count(&self) -> u64 {
        self.all.len() as u64
    }

    /// Those that were counted more than once.
    pub fn repeated(mut self) -> HashSet<u64> {
        self.all.sort_unstable();
        self.all.windows(2).filter(|two| two[0] == two[1]).map(|two| two[0]).collect()
    }
}

/// A file that would be sent.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Its name.
    pub key: JobKey,
    /// Its state.
    pub stamp: Stamp,
    /// Why it would be sent.
    pub forecast: Forecast,
    /// Whether a job of the queue has a file of this size.
    pub alike: bool,
    /// Whether the queue knows that it shares a transcription.
    pub follows: bool,
}

/// What was read of a file, as far as it was worth reading.
#[derive(Debug, Clone, Copy, Default)]
pub struct Read {
    likeness: Option<Hash>,
    content: Option<Hash>,
}

/// Reads what there is to compare. Blocks. What cannot be read is compared with nothing.
pub fn read(measured: &Measured, folder: &Path, file: &Candidate, repeated: bool) -> Read {
    let path = full_path(folder, &file.key.path);
    let known = |fact, read: &dyn Fn() -> Option<Hash>| {
        let kept = measured.get(fact, &file.key, &file.stamp).map(Hash);
        kept.or_else(|| read().inspect(|hash| measured.put(fact, &file.key, &file.stamp, &hash.0)))
    };
    Read {
        likeness: if repeated { known(Fact::Likeness, &|| likeness(&path, file.stamp.size).ok()) } else { None },
        content: if file.alike { known(Fact::Content, &|| hash(&path).ok()) } else { None },
    }
}

/// What was seen so far of all that would be bought.
#[derive(Debug, Default)]
pub struct Twins {
    seen: HashSet<[u8; 16]>,
}

impl Twins {
    /// Which of these files of a source share what is, or would be, bought for another one.
    ///
    /// # Errors
    /// Of the queue.
    pub async fn among(
        &mut self,
        queue: &Queue,
        source: &Source,
        files: &[(Candidate, Read)],
    ) -> Result<Vec<bool>, Failure> {
        let params: Vec<Option<Hash>> = files.iter().map(|(file, read)| params(source, file, read)).collect();
        let order = |(file, params): (&(Candidate, Read), &Option<Hash>)| {
            let content = file.1.content.filter(|_| !file.0.follows)?;
            Some(Order { service: source.service.clone(), content, params: (*params)? })
        };
        let orders: Vec<Option<Order>> = files.iter().zip(&params).map(order).collect();
        let mut bought = queue.bought(orders.iter().flatten().cloned().collect()).await?.into_iter();
        let mut twins = Vec::with_capacity(files.len());
        for (((file, read), params), order) in files.iter().zip(&params).zip(&orders) {
            let is_bought = order.is_some() && bought.next().unwrap_or(false);
            let alike = read
                .likeness
                .zip(*params)
                .is_some_and(|(likeness, params)| !self.seen.insert(name(source, likeness, params)));
            twins.push(file.follows || is_bought || alike);
        }
        Ok(twins)
    }
}

/// Under which parameters it would be bought; `None` where nothing is to be compared, or they do not render.
fn params(source: &Source, file: &Candidate, read: &Read) -> Option<Hash> {
    read.likeness.or(read.content)?;
    let now = Timestamp(0);
    let job = Job::found(JobId(0), file.key.clone(), file.stamp, now, now);
    let made = making::foretold(source, &job, now)?;
    Some(Hash::of(&made.rendered.params.canonical()))
}

fn name(source: &Source, likeness: Hash, params: Hash) -> [u8; 16] {
    let mut name = [0; 16];
    let all = [source.service.as_str().as_bytes(), &[0], &likeness.0, &params.0].concat();
    name.copy_from_slice(&Hash::of(&all).0[..16]);
    name
}
