//! Copies among what would be sent: each content is bought once. How far files are read for that: those of a
//! size that no other one has, not at all; of others a few pieces; and the whole only where a job of the queue
//! has a file of that size, since what was bought is known by its whole content.

use crate::cli::commands::plan::KnownFiles;
use crate::cli::runtime::exit::CommandError;
use crate::cli::unsupported;
use crate::cli::unsupported::{UnsupportedCheck, failure_message};
use crate::config::model::Source;
use crate::control::explain::forecast::Forecast;
use crate::domain::job::{Job, JobKey, Stamp};
use crate::domain::manifest_row::ManifestRow;
use crate::domain::missing_enrichment::MissingPart;
use crate::domain::names::{Hash, JobId, Timestamp};
use crate::domain::stage::AudioAmount;
use crate::domain::token::PurchaseKey;
use crate::domain::track_selection::TrackSelection;
use crate::media::length::cache::{LengthCache, LengthFact};
use crate::pipeline::request;
use crate::source::metadata::file_look::hash;
use crate::source::metadata::sample_hash::sample_hash;
use crate::source::recording_place::{Recording, recording};
use std::collections::HashSet;

/// The sizes that more than one file has.
#[derive(Debug, Default)]
pub struct Sizes {
    all: Vec<u64>,
}

impl Sizes {
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

/// A recording that would be sent.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub key: JobKey,
    pub stamp: Stamp,
    /// Why it would be sent.
    pub forecast: Forecast,
    /// Whether the content may have been bought already: a job of the queue has a file of this size.
    pub has_same_size: bool,
    /// Whether the queue knows that it shares a transcription.
    pub follows: bool,
    /// The row of a manifest that orders it.
    pub row: Option<Box<ManifestRow>>,
    /// How long it is by its row's word.
    pub announced: Option<AudioAmount>,
}

impl Candidate {
    /// As a job that was just found.
    pub fn job(&self) -> Job {
        let now = Timestamp(0);
        Job { row: self.row.clone(), ..Job::found(JobId(0), self.key.clone(), self.stamp, now, now) }
    }

    /// Whether only the service reads it.
    pub fn is_remote(&self) -> bool {
        self.row.as_deref().is_some_and(ManifestRow::is_remote)
    }
}

/// What was read of a recording, as far as it was worth reading.
#[derive(Debug, Clone, Default)]
pub struct ReadContent {
    likeness: Option<Hash>,
    content: Option<Hash>,
    /// Under which parameters it would be bought, where that is to be compared.
    params: Option<Hash>,
    /// Why it would not be made, in words.
    pub problem: Option<String>,
    /// What is sent of its sound, where that is not all.
    pub track_selection: Option<TrackSelection>,
    /// Under which template it would be sent; empty for none.
    pub template: String,
    /// What its result would lack.
    pub missing: Vec<MissingPart>,
    /// What is requested and would have no effect, or little, in words.
    pub without_effect: Option<String>,
}

/// Reads what there is to compare. Blocks. What cannot be read is compared with nothing.
pub fn read(
    measured: &LengthCache,
    foresight: &UnsupportedCheck,
    source: &Source,
    file: &Candidate,
    repeated: bool,
) -> ReadContent {
    let job = file.job();
    let (likeness, content) = match recording(source, &job) {
        Recording::Remote(content) => (Some(content), Some(content)),
        Recording::Object(_) => (None, None),
        Recording::File(path) => {
            let known = |fact, read: &dyn Fn() -> Option<Hash>| {
                let kept = measured.get(fact, &file.key, &file.stamp).map(Hash);
                kept.or_else(|| read().inspect(|hash| measured.put(fact, &file.key, &file.stamp, &hash.0)))
            };
            let alike = || known(LengthFact::Likeness, &|| sample_hash(&path, file.stamp.size).ok());
            let whole = || known(LengthFact::Content, &|| hash(&path).ok());
            (repeated.then(alike).flatten(), file.has_same_size.then(whole).flatten())
        }
    };
    let (made, pick, problem) = match request::forecast(source, &job, Timestamp(0)) {
        Ok((made, pick)) => (made, pick, None),
        Err(fault) => (None, None, Some(fault.words)),
    };
    let foreseen = match &made {
        Some(made) => foresight.check_request(source, &made.rendered.params),
        None => foresight.of_template(source, &source.template),
    };
    let template = made.as_ref().map_or_else(|| source.template.name(), |made| &made.record.template).to_owned();
    let problem = problem.or_else(|| failure_message(source, &template, &foreseen));
    let is_compared = likeness.or(content).is_some() || file.row.is_some();
    let params = made.filter(|_| is_compared).map(|made| Hash::of(&made.rendered.canonical()));
    let without_effect = unsupported::without_effect(&foreseen);
    ReadContent {
        likeness,
        content,
        params,
        problem,
        track_selection: pick,
        template,
        missing: foreseen.missing,
        without_effect,
    }
}

/// What was seen so far of all that would be bought.
#[derive(Debug, Default)]
pub struct Duplicates {
    seen: HashSet<[u8; 16]>,
}

impl Duplicates {
    /// Which of these files of a source share what is, or would be, bought for another one.
    ///
    /// # Errors
    /// Of the queue.
    pub async fn find_duplicates(
        &mut self,
        queue: &KnownFiles,
        source: &Source,
        files: &[(Candidate, ReadContent)],
    ) -> Result<Vec<bool>, CommandError> {
        let order = |(file, read): &(Candidate, ReadContent)| {
            let content = read.content.filter(|_| !file.follows)?;
            Some(PurchaseKey { service: source.service.clone(), content, params: read.params? })
        };
        let orders: Vec<Option<PurchaseKey>> = files.iter().map(order).collect();
        let mut bought = queue.bought(orders.iter().flatten().cloned().collect()).await?.into_iter();
        let mut duplicates = Vec::with_capacity(files.len());
        for ((file, read), order) in files.iter().zip(&orders) {
            let is_bought = order.is_some() && bought.next().unwrap_or(false);
            let names = read.likeness.zip(read.params);
            let alike = names.is_some_and(|(likeness, params)| !self.seen.insert(name(source, likeness, params)));
            duplicates.push(file.follows || is_bought || alike);
        }
        Ok(duplicates)
    }
}

fn name(source: &Source, likeness: Hash, params: Hash) -> [u8; 16] {
    let mut name = [0; 16];
    let all = [source.service.as_str().as_bytes(), &[0], &likeness.0, &params.0].concat();
    name.copy_from_slice(&Hash::of(&all).0[..16]);
    name
}
