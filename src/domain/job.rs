//! The row of the queue: one media file under one source.

use crate::domain::charge::Charge;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::manifest_row::ManifestRow;
use crate::domain::missing_enrichment::{MissingPart, join_names};
use crate::domain::names::{Hash, JobId, SourceName, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::request_record::RequestRecord;
use crate::domain::sent_audio::SentAudio;
use crate::domain::stage::{IllegalTransition, JobEvent, Stage};
use crate::domain::token::PurchaseKey;
use serde::{Deserialize, Serialize};

/// What names a job for ever, on every machine and in every store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JobKey {
    /// The source it was found under.
    pub source: SourceName,
    /// Where it lies below the source's root.
    pub path: RelPath,
}

impl JobKey {
    /// 32 hexadecimal digits that stand for this key in tokens and indexes.
    pub fn tag(&self) -> JobTag {
        JobTag::of(&self.source, &self.path)
    }
}

impl JobTag {
    /// Of the job of this path under this source.
    pub fn of(source: &SourceName, path: &RelPath) -> Self {
        let (source, path) = (source.as_str().as_bytes(), path.as_bytes());
        let mut bytes = Vec::with_capacity(source.len() + 1 + path.len());
        bytes.extend_from_slice(source);
        bytes.push(0); // a name holds no NUL, so two keys never give the same bytes
        bytes.extend_from_slice(path);
        let hash = Hash::of(&bytes);
        let mut tag = [0; 16];
        tag.copy_from_slice(&hash.0[..16]);
        Self(tag)
    }
}

/// A [`JobKey`] in 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobTag(pub [u8; 16]);

/// What tells one state of a file from another without reading it. Times in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Bytes.
    pub size: u64,
    /// Of the content; can be preset by whoever copies.
    pub mtime_ns: i64,
    /// Of the inode; cannot be preset on local disks.
    pub ctime_ns: i64,
    /// The file's number on its disk.
    pub inode: u64,
}

/// A file that was written for a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The name in its folder.
    pub name: RelPath,
    /// Of the bytes as they were written.
    pub hash: Hash,
    /// The whole path of its folder, where it does not lie beside the recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<RelPath>,
}

impl Output {
    /// For people: its name, and its folder where that is another than the recording's.
    pub fn display_name(&self) -> String {
        match &self.at {
            Some(folder) => format!("{folder}/{}", self.name),
            None => self.name.escaped(),
        }
    }
}

/// A job. What is true of it at every stage stands here; what is known only from some stage on
/// stands in the stage. Leases and fences belong to the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    pub id: JobId,
    /// Its name everywhere else.
    pub key: JobKey,
    /// The file as it was last looked at.
    pub seen: Stamp,
    /// Counts the attempts to buy a transcription, from 0.
    pub round: u32,
    pub stage: Stage,
    /// The earliest next move; `None` when nothing moves it by itself: it has ended, or a person is
    /// asked.
    pub due: Option<Timestamp>,
    /// Its own failures since it last got something done. Outages do not count.
    pub attempts: u32,
    /// What went wrong last, or what it waits for.
    pub fault: Option<Fault>,
    /// When it came to this stage.
    pub since: Timestamp,
    /// What lies beside the source by our hand.
    pub outputs: Vec<Output>,
    /// What may lie there by our hand though it is not written down as placed: each output's hash is
    /// kept before it is shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placing: Vec<Hash>,
    /// What its outputs were made from, since its file was seen to change: the same content costs nothing
    /// again, whatever the template says by then (design, promise 3).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_from: Option<PurchaseKey>,
    /// What it is made with; `None` before that is settled, and in what an older release has made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub making: Option<Box<RequestRecord>>,
    /// The file as a person has said that it is whole: it is held no longer, until it changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vouched: Option<Stamp>,
    /// What was last sent for it; `None`: the file, or nothing yet, or another job did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<SentAudio>,
    /// When a person put it before all others. Kept by the store, as its charges are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bumped: Option<Timestamp>,
    /// The row of a manifest that orders it; `None` for what was found in a folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<Box<ManifestRow>>,
    /// The language that was heard most in what its outputs were made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// What was requested and is not in what its outputs were made from; empty too in what an older release wrote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingPart>,
    /// What of the service's answer could not be read when its outputs were made, in words; `None` too in what an older
    /// release wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<String>,
    /// Where its transcription is, as in [`Intent::origin`](crate::domain::stage::Intent::origin): a
    /// service that has moved need not know it. `None`: nothing was bought, or an older release did not write
    /// it down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bought_at: Option<String>,
    /// When a person took note of it as it ended: failed, or written without something. Any step ends that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Timestamp>,
    /// What its source was called before it was renamed in `jobs.toml`, the first name first: what was bought then bears
    /// a token of that name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_sources: Vec<SourceName>,
    /// What it cost, oldest first. Kept by the store: what is committed does not change it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub charges: Vec<Charge>,
}

impl Job {
    /// Whether only the service reads its recording.
    pub fn is_remote(&self) -> bool {
        self.row.as_deref().is_some_and(ManifestRow::is_remote)
    }

    /// A file just found, to be looked at again at `due`.
    pub fn found(id: JobId, key: JobKey, seen: Stamp, now: Timestamp, due: Timestamp) -> Self {
        Self {
            id,
            key,
            seen,
            round: 0,
            stage: Stage::Found,
            due: Some(due),
            attempts: 0,
            fault: None,
            since: now,
            outputs: Vec::new(),
            placing: Vec::new(),
            made_from: None,
            making: None,
            vouched: None,
            sent: None,
            bumped: None,
            row: None,
            language: None,
            missing: Vec::new(),
            unread: None,
            bought_at: None,
            acknowledged: None,
            earlier_sources: Vec::new(),
            charges: Vec::new(),
        }
    }

    /// The job after `event`: the stage by [`Stage::apply`], the rest by what the event says. Due now
    /// unless it has ended.
    ///
    /// # Errors
    /// [`IllegalTransition`] where the stage does not know the event; the job is given up with it.
    pub fn apply(mut self, event: JobEvent, now: Timestamp) -> Result<Self, IllegalTransition> {
        match &event {
            JobEvent::Grew { stamp } => {
                self.seen = *stamp;
                self.vouched = None;
                self.sent = None;
                self.attempts = 0;
                if let Some(making) = &mut self.making {
                    making.described = None;
                }
                // What a person wanted was its earlier content.
                self.bumped = self.bumped.filter(|_| !self.stage.is_end());
                if let Stage::Written { order, .. } = &self.stage {
                    self.made_from = Some(order.clone());
                }
            }
            JobEvent::Probed { making: Some(making), .. } | JobEvent::Remade { making, .. } => {
                self.making = Some(making.clone());
            }
            JobEvent::Intended { .. } => {
                if let Some(making) = &mut self.making {
                    making.is_sent = true;
                }
            }
            JobEvent::Fresh => {
                (self.made_from, self.making, self.sent, self.attempts) = (None, None, None, 0);
                self.round += 1;
                self.vouched = Some(self.seen); // it was weighed by a person
            }
            JobEvent::Uploaded { sent, .. } => self.sent.clone_from(sent),
            JobEvent::Followed { .. } => self.sent = None,
            JobEvent::Created { .. } => {
                if let Stage::Submitting { intent, .. } = &self.stage {
                    self.bought_at = Some(intent.origin.clone());
                }
            }
            JobEvent::Adopted { round, origin, .. } => {
                self.bought_at.clone_from(origin);
                // A round of this job is never used twice: its tokens would be equal.
                self.round = self.round.max(*round);
                if !matches!(self.stage, Stage::Submitting { .. } | Stage::Submitted { .. }) {
                    self.sent = None; // it was bought by another
                }
            }
            JobEvent::Anew => self.round += 1,
            JobEvent::PaidAgain => {
                self.attempts = 0;
                self.round += 1;
            }
            JobEvent::Revived => {
                self.attempts = 0;
                self.round += u32::from(self.stage.retry_buys());
            }
            JobEvent::Reordered { row } => {
                // What it has bought keeps the tokens of that round.
                self.round += u32::from(self.stage.transcription().is_some());
                self.row = Some(row.clone());
                // A person has ordered it as it is: no stalled recorder.
                self.vouched = Some(self.seen);
                (self.sent, self.made_from, self.making, self.attempts) = (None, None, None, 0);
            }
            JobEvent::Fetched { .. } => self.attempts = 0,
            JobEvent::Written { outputs, language, missing, unread } => {
                self.outputs.clone_from(outputs);
                self.missing.clone_from(missing);
                self.unread.clone_from(unread);
                self.language.clone_from(language);
                self.placing.clear();
                self.made_from = None;
            }
            JobEvent::Restored { outputs } => self.outputs.clone_from(outputs),
            JobEvent::Forgotten => {
                // A token that bought what is worth nothing is never used again.
                self.round += u32::from(self.stage.retry_buys());
                // The same content costs nothing when it comes back, whatever the template says by then.
                if let Stage::Written { order, .. } = &self.stage {
                    self.made_from = Some(order.clone());
                }
                (self.making, self.sent, self.row, self.vouched, self.bumped) = (None, None, None, None, None);
                (self.placing, self.attempts) = (Vec::new(), 0);
            }
            _ => {}
        }
        self.stage = self.stage.apply(event)?;
        self.acknowledged = None;
        self.fault = match &self.stage {
            Stage::Failed { fault, .. } => Some(fault.clone()),
            _ => None,
        };
        self.since = now;
        self.due = (!self.stage.is_end()).then_some(now);
        Ok(self)
    }

    /// The job under the new name of its source. What waits for its folder looks for it now.
    #[must_use]
    pub fn with_source_name(mut self, source: SourceName, now: Timestamp) -> Self {
        if self.awaits_file() {
            (self.due, self.fault) = (Some(now), None);
        }
        self.earlier_sources.push(std::mem::replace(&mut self.key.source, source));
        self
    }

    /// What stands for its name in tokens: the name that it has, then those that it had.
    pub fn tags(&self) -> impl Iterator<Item = JobTag> {
        let earlier = self.earlier_sources.iter().rev().map(|source| JobTag::of(source, &self.key.path));
        std::iter::once(self.key.tag()).chain(earlier)
    }

    /// Whether this file is still the one that was seen. What a person has cancelled must not be bought
    /// because somebody touched or moved it: only another length is another content then.
    pub fn matches_file(&self, stamp: &Stamp) -> bool {
        match self.stage {
            Stage::Cancelled { .. } => self.seen.size == stamp.size,
            _ => self.seen == *stamp,
        }
    }

    /// Money is or may be spent for it, but nothing tells that it will end: it waits for a person, or
    /// is stuck at the service. It no longer counts against the limit of running transcriptions.
    pub fn is_parked(&self) -> bool {
        let stuck = self.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Stuck);
        let in_flight = matches!(self.stage, Stage::Submitting { .. } | Stage::Submitted { .. });
        in_flight && (self.due.is_none() || stuck)
    }

    /// Whether it ended in a way that a person may take note of.
    pub fn may_be_acknowledged(&self) -> bool {
        matches!(self.stage, Stage::Failed { .. }) || self.is_incomplete()
    }

    /// Whether it is written without something, and no person has retried or acknowledged that.
    pub fn is_unhandled_shortfall(&self) -> bool {
        self.is_incomplete() && self.acknowledged.is_none()
    }

    /// Whether it failed and no person has retried, cancelled or acknowledged that.
    pub fn is_unhandled_failure(&self) -> bool {
        matches!(self.stage, Stage::Failed { .. }) && self.acknowledged.is_none()
    }

    /// Whether it waits for a person to say where what was bought for it is now.
    pub fn awaits_location(&self) -> bool {
        let asks = self.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Asks);
        asks && self.due.is_none() && matches!(self.stage, Stage::Submitted { .. })
    }

    /// Whether it waits for its file, or for the folder that it lies in: seen there, it goes on.
    pub fn awaits_file(&self) -> bool {
        let is_missing = |fault: &Fault| matches!(fault.kind, FaultKind::FolderAway | FaultKind::Awaited);
        !self.stage.is_end() && self.fault.as_ref().is_some_and(is_missing)
    }

    /// Whether its outputs are written, and lack something that was requested or could not be read.
    pub fn is_incomplete(&self) -> bool {
        self.is_written() && (!self.missing.is_empty() || self.unread.is_some())
    }

    /// What its outputs lack of what was requested, by name: `diarization, translation fr`. `None`: nothing, or
    /// they are not written.
    pub fn missing_names(&self) -> Option<String> {
        (self.is_written() && !self.missing.is_empty()).then(|| join_names(&self.missing))
    }

    /// What its outputs lack because it could not be read. `None`: nothing, or they are not written.
    pub fn unread(&self) -> Option<&str> {
        self.unread.as_deref().filter(|_| self.is_written())
    }

    /// What its outputs lack, for people: `without: diarization; not readable in the service's answer: languages`.
    pub fn shortfall(&self) -> Option<String> {
        let without = self.missing_names().map(|parts| format!("without: {parts}"));
        let unread = self.unread().map(|parts| format!("not readable in the service's answer: {parts}"));
        let all: Vec<String> = without.into_iter().chain(unread).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    fn is_written(&self) -> bool {
        matches!(self.stage, Stage::Written { .. })
    }

    /// Whether it waits until its file has been quiet for `hold`.
    pub fn is_held(&self) -> bool {
        self.fault.as_ref().is_some_and(|fault| fault.kind == FaultKind::Held)
    }

    /// Whether a person has said that the file as it is now is whole.
    pub fn is_confirmed_complete(&self) -> bool {
        self.vouched == Some(self.seen)
    }

    /// The same job, resting until `due`, for a reason.
    #[must_use]
    pub fn deferred(mut self, due: Option<Timestamp>, fault: Option<Fault>) -> Self {
        self.due = due;
        self.fault = fault;
        self
    }
}
