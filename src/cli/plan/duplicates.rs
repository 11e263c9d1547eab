//! Duplicates among the files that would be sent: each content is bought once.
//!
//! A file is read only as far as needed. A file whose size no other file has is not read. Of files with equal sizes, a
//! few samples are read. The whole content is read only if a job of the queue has a file of that size, because the
//! queue knows purchases by the hash of the whole content.

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

/// The sizes of all files, to find those that more than one file has.
#[derive(Debug, Default)]
pub struct Sizes {
    sizes: Vec<u64>,
}

impl Sizes {
    pub fn add(&mut self, size: u64) {
        self.sizes.push(size);
    }

    /// Returns the number of files.
    pub fn count(&self) -> u64 {
        self.sizes.len() as u64
    }

    /// Returns the sizes that more than one file has.
    pub fn repeated(mut self) -> HashSet<u64> {
        self.sizes.sort_unstable();
        self.sizes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect()
    }
}

/// A recording that would be sent.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub key: JobKey,
    pub stamp: Stamp,
    /// Why it would be sent.
    pub forecast: Forecast,
    /// Whether the content may have been bought already, for example because a job of the queue has a file of this
    /// size.
    pub has_same_size: bool,
    /// Whether its job waits for the result of a duplicate.
    pub follows: bool,
    /// The row of a manifest that orders it, if it comes from one.
    pub row: Option<Box<ManifestRow>>,
    /// The duration that its row declares.
    pub announced: Option<AudioAmount>,
}

impl Candidate {
    /// Returns a job for the recording, as if it was just found.
    pub fn job(&self) -> Job {
        let now = Timestamp(0);
        Job { row: self.row.clone(), ..Job::found(JobId(0), self.key.clone(), self.stamp, now, now) }
    }

    /// Whether only the service reads the recording: its row has an address.
    pub fn is_remote(&self) -> bool {
        self.row.as_deref().is_some_and(ManifestRow::is_remote)
    }
}

/// What is known of a recording and its request.
#[derive(Debug, Clone, Default)]
pub struct ReadContent {
    /// The hash of its samples, if another file has the same size.
    sample: Option<Hash>,
    /// The hash of the whole content, if the content may have been bought already.
    content: Option<Hash>,
    /// The hash of the request parameters, if the recording is compared with others.
    params: Option<Hash>,
    /// Why the job would fail, in words.
    pub problem: Option<String>,
    /// The part of the sound that is sent; `None` for all.
    pub track_selection: Option<TrackSelection>,
    /// The name of the template; empty for none.
    pub template: String,
    /// The requested parts that the result would lack.
    pub missing: Vec<MissingPart>,
    /// The requested parameters that would have no or little effect, in words.
    pub without_effect: Option<String>,
}

/// Builds the request of a recording, and hashes as much of the content as the comparison needs. A content that cannot
/// be read equals no other. `is_repeated`: whether another file has the same size. Blocks.
pub fn read(
    measured: &LengthCache,
    unsupported_check: &UnsupportedCheck,
    source: &Source,
    file: &Candidate,
    is_repeated: bool,
) -> ReadContent {
    let job = file.job();
    let (sample, content) = match recording(source, &job) {
        Recording::Remote(content) => (Some(content), Some(content)),
        Recording::Object(_) => (None, None),
        Recording::File(path) => {
            let known = |fact, read: &dyn Fn() -> Option<Hash>| {
                let kept = measured.get(fact, &file.key, &file.stamp).map(Hash);
                kept.or_else(|| read().inspect(|hash| measured.put(fact, &file.key, &file.stamp, &hash.0)))
            };
            let sample_of_file = || known(LengthFact::Likeness, &|| sample_hash(&path, file.stamp.size).ok());
            let hash_of_file = || known(LengthFact::Content, &|| hash(&path).ok());
            (is_repeated.then(sample_of_file).flatten(), file.has_same_size.then(hash_of_file).flatten())
        }
    };
    let (built, pick, problem) = match request::forecast(source, &job, Timestamp(0)) {
        Ok((built, pick)) => (built, pick, None),
        Err(fault) => (None, None, Some(fault.words)),
    };
    let unsupported_parts = match &built {
        Some(built) => unsupported_check.check_request(source, &built.rendered.params),
        None => unsupported_check.of_template(source, &source.template),
    };
    let template = built.as_ref().map_or_else(|| source.template.name(), |built| &built.record.template).to_owned();
    let problem = problem.or_else(|| failure_message(source, &template, &unsupported_parts));
    let is_compared = sample.or(content).is_some() || file.row.is_some();
    let params = built.filter(|_| is_compared).map(|built| Hash::of(&built.rendered.canonical()));
    let without_effect = unsupported::without_effect(&unsupported_parts);
    ReadContent {
        sample,
        content,
        params,
        problem,
        track_selection: pick,
        template,
        missing: unsupported_parts.missing,
        without_effect,
    }
}

/// The recordings that were compared so far, as keys of service, samples and parameters.
#[derive(Debug, Default)]
pub struct Duplicates {
    seen: HashSet<[u8; 16]>,
}

impl Duplicates {
    /// Returns for each file of a source whether it shares a purchase that was made, or would be made, for another one.
    pub async fn find_duplicates(
        &mut self,
        queue: &KnownFiles,
        source: &Source,
        files: &[(Candidate, ReadContent)],
    ) -> Result<Vec<bool>, CommandError> {
        let purchase_key = |(file, read): &(Candidate, ReadContent)| {
            let content = read.content.filter(|_| !file.follows)?;
            Some(PurchaseKey { service: source.service.clone(), content, params: read.params?, part: None })
        };
        let purchase_keys: Vec<Option<PurchaseKey>> = files.iter().map(purchase_key).collect();
        let mut bought = queue.bought(purchase_keys.iter().flatten().cloned().collect()).await?.into_iter();
        let mut duplicates = Vec::with_capacity(files.len());
        for ((file, read), purchase_key) in files.iter().zip(&purchase_keys) {
            let is_bought = purchase_key.is_some() && bought.next().unwrap_or(false);
            let compared = read.sample.zip(read.params);
            let is_repeated =
                compared.is_some_and(|(sample, params)| !self.seen.insert(duplicate_key(source, sample, params)));
            duplicates.push(file.follows || is_bought || is_repeated);
        }
        Ok(duplicates)
    }
}

fn duplicate_key(source: &Source, sample: Hash, params: Hash) -> [u8; 16] {
    let mut key = [0; 16];
    let parts = [source.service.as_str().as_bytes(), &[0], &sample.0, &params.0].concat();
    key.copy_from_slice(&Hash::of(&parts).0[..16]);
    key
}
