//! What a message says: a title, a text, and the same as JSON. Names of recordings come from the store when it is made,
//! so that what was erased meanwhile is in no message.

use super::digest::DigestPages;
use super::queue::{Batch, Notice};
use crate::config::template::notice::NoticeVars;
use crate::domain::escape;
use crate::domain::job::Job;
use crate::domain::names::{JobId, Timestamp};
use crate::domain::notification::NotificationEvent;
use crate::store::contract::{Queries, StoreError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Value, json};

/// How many reasons a text has.
const REASONS: usize = 10;

/// How many recordings a text names for each reason.
const NAMES: usize = 5;

/// A job that a message is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoticedJob {
    pub job: JobId,
    pub source: String,
    pub path: Vec<u8>,
    pub reason: String,
    pub at: Timestamp,
}

impl NoticedJob {
    fn of(job: &Job, notice: &Notice) -> Self {
        Self {
            job: job.id,
            source: job.key.source.to_string(),
            path: job.key.path.as_bytes().to_vec(),
            reason: notice.words.clone(),
            at: notice.at,
        }
    }

    fn lossy(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }

    /// Returns the path without characters that would change what people see.
    fn shown(&self) -> String {
        escape::line(&self.lossy()).into_owned()
    }

    fn json(&self) -> Value {
        let mut object = json!({
            "job": self.job.0, "source": self.source, "path": self.lossy(), "reason": self.reason, "at": rfc3339(self.at),
        });
        if std::str::from_utf8(&self.path).is_err() {
            object["path_b64"] = STANDARD.encode(&self.path).into();
        }
        object
    }
}

/// A message, ready to be sent.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The same at each attempt.
    pub id: String,
    pub event: NotificationEvent,
    pub time: Timestamp,
    /// How many things happened.
    pub count: u64,
    pub title: String,
    pub text: String,
    pub jobs: Vec<NoticedJob>,
    /// The reasons, the most frequent first, and how many jobs each has.
    pub reasons: Vec<(String, u64)>,
    /// How many things are not described one by one.
    pub more: u64,
    /// What a digest has beyond its text.
    pub digest: Option<DigestPages>,
}

impl Message {
    /// Words a batch of events.
    ///
    /// # Errors
    /// The store cannot be read.
    pub async fn of_batch(
        store: &dyn Queries,
        event: NotificationEvent,
        (id, time): (&str, Timestamp),
        batch: &Batch,
    ) -> Result<Self, StoreError> {
        let (mut jobs, mut words, mut more) = (Vec::new(), Vec::new(), batch.more);
        for notice in &batch.notices {
            match notice.job {
                None => words.push(notice.words.clone()),
                Some(job) => match store.job(job).await? {
                    Some(job) if !job.stage.is_erased() => jobs.push(NoticedJob::of(&job, notice)),
                    _ => more += 1,
                },
            }
        }
        Ok(Self::worded(event, (id, time), jobs, words, more))
    }

    /// Words what happened to these jobs, and these sentences; of `more` things nothing is known.
    pub fn worded(
        event: NotificationEvent,
        (id, time): (&str, Timestamp),
        jobs: Vec<NoticedJob>,
        words: Vec<String>,
        more: u64,
    ) -> Self {
        let reasons = grouped(&jobs);
        let total = jobs.len() as u64 + words.len() as u64 + more;
        let title = title(event, &jobs, &words, total);
        let text = if words.is_empty() { text_of_jobs(&jobs, &reasons, more) } else { lines(&words) };
        let id = id.to_owned();
        Self { id, event, time, count: total, title, text, jobs, reasons, more, digest: None }
    }

    /// Returns what an address gets as JSON.
    pub fn json(&self) -> Value {
        let reasons = self.reasons.iter().map(|(reason, jobs)| json!({ "reason": reason, "jobs": jobs }));
        let mut object = json!({
            "id": self.id, "type": self.event.name(), "timestamp": rfc3339(self.time), "count": self.count,
            "title": self.title, "text": self.text, "more": self.more,
            "reasons": reasons.collect::<Vec<_>>(),
            "jobs": self.jobs.iter().map(NoticedJob::json).collect::<Vec<_>>(),
        });
        if let Some(digest) = &self.digest {
            object["digest"] = digest.json.clone();
        }
        object
    }

    /// Returns what the arguments of a program may contain.
    pub fn vars(&self) -> NoticeVars {
        let others = self.count.saturating_sub(1);
        let first = self.jobs.first();
        let path = first.map(|job| match others {
            0 => job.shown(),
            others => format!("{} and {others} more", job.shown()),
        });
        let reasons: Vec<String> = match &self.reasons[..] {
            [(reason, _)] => vec![reason.clone()],
            many => many.iter().take(REASONS).map(|(reason, jobs)| format!("{reason} ({jobs})")).collect(),
        };
        let reason = if self.jobs.is_empty() { self.text.clone() } else { reasons.join("; ") };
        let only = first.filter(|_| others == 0);
        NoticeVars {
            event: self.event.name(),
            id: self.id.clone(),
            title: self.title.clone(),
            text: self.text.clone(),
            count: self.count,
            path: path.unwrap_or_default(),
            source: first.map(|job| job.source.clone()).unwrap_or_default(),
            job: only.map(|job| job.job.to_string()).unwrap_or_default(),
            reason: escape::line(&reason).into_owned(),
            time: rfc3339(self.time),
        }
    }
}

/// Returns the reasons with their numbers of jobs, the most frequent first.
fn grouped(jobs: &[NoticedJob]) -> Vec<(String, u64)> {
    let mut reasons: Vec<(String, u64)> = Vec::new();
    for job in jobs.iter().filter(|job| !job.reason.is_empty()) {
        match reasons.iter_mut().find(|(reason, _)| *reason == job.reason) {
            Some((_, jobs)) => *jobs += 1,
            None => reasons.push((job.reason.clone(), 1)),
        }
    }
    reasons.sort_by_key(|(_, jobs)| std::cmp::Reverse(*jobs));
    reasons
}

fn title(event: NotificationEvent, jobs: &[NoticedJob], words: &[String], total: u64) -> String {
    let happened = match event {
        NotificationEvent::Failed => "failed",
        NotificationEvent::Written => "was written",
        _ => {
            return words.first().map_or_else(
                || "scribed".to_owned(),
                |first| {
                    let more = if words.len() > 1 { format!(" (and {} more)", words.len() - 1) } else { String::new() };
                    format!("scribed: {}{more}", escape::line(&shortened(first, 120)))
                },
            );
        }
    };
    match (jobs, total) {
        ([job], 1) => format!("scribed: {} {happened}", job.shown()),
        _ if event == NotificationEvent::Written => format!("scribed: {total} jobs were written"),
        _ => format!("scribed: {total} jobs failed"),
    }
}

fn text_of_jobs(jobs: &[NoticedJob], reasons: &[(String, u64)], more: u64) -> String {
    let name = |job: &NoticedJob| format!("{}/{}", job.source, job.shown());
    let mut text = String::new();
    if let ([job], 0) = (jobs, more) {
        let reason = if job.reason.is_empty() { String::new() } else { format!(": {}", escape::line(&job.reason)) };
        return format!("{}{reason} (job {})", name(job), job.job);
    }
    let mut list = |head: String, of_reason: Vec<&NoticedJob>| {
        text += &head;
        of_reason.iter().take(NAMES).for_each(|job| text += &format!("  {}\n", name(job)));
        if of_reason.len() > NAMES {
            text += &format!("  … and {} more\n", of_reason.len() - NAMES);
        }
    };
    for (reason, number) in reasons.iter().take(REASONS) {
        let of_reason = jobs.iter().filter(|job| job.reason == *reason).collect();
        list(format!("{number} × {}\n", escape::line(reason)), of_reason);
    }
    let plain: Vec<&NoticedJob> = jobs.iter().filter(|job| job.reason.is_empty()).collect();
    if !plain.is_empty() {
        list(String::new(), plain);
    }
    let other: u64 = reasons.iter().skip(REASONS).map(|(_, jobs)| jobs).sum();
    if other > 0 {
        text += &format!("{other} × other reasons\n");
    }
    if more > 0 {
        text += &format!("and {more} more, which `scribed jobs` lists\n");
    }
    text.trim_end().to_owned()
}

fn lines(words: &[String]) -> String {
    words.iter().map(|words| escape::line(words).into_owned()).collect::<Vec<_>>().join("\n")
}

/// Shortens a text to this many characters.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// Returns a moment as machines read it.
pub fn rfc3339(at: Timestamp) -> String {
    DateTime::<Utc>::from_timestamp_millis(at.0).unwrap_or_default().to_rfc3339_opts(SecondsFormat::Secs, true)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn job(number: u64, path: &[u8], reason: &str) -> NoticedJob {
        let (source, path, reason) = ("tapes".to_owned(), path.to_vec(), reason.to_owned());
        NoticedJob { job: JobId(number), source, path, reason, at: Timestamp(1_700_000_000_000) }
    }

    fn failed(jobs: Vec<NoticedJob>, more: u64) -> Message {
        Message::worded(NotificationEvent::Failed, ("msg_1", Timestamp(1_700_000_000_000)), jobs, Vec::new(), more)
    }

    #[test]
    fn one_failure_names_the_recording_and_the_reason() {
        let message = failed(vec![job(7, b"a b.mp4", "no audio track")], 0);
        assert_eq!(message.title, "scribed: a b.mp4 failed");
        assert_eq!(message.text, "tapes/a b.mp4: no audio track (job 7)");
        let vars = message.vars();
        assert_eq!((vars.path.as_str(), vars.reason.as_str(), vars.job.as_str()), ("a b.mp4", "no audio track", "7"));
    }

    #[test]
    fn many_failures_are_grouped_by_reason_and_the_text_stays_short() {
        let jobs = (0..900).map(|n| job(n, format!("{n}.mp4").as_bytes(), &format!("reason {}", n % 30))).collect();
        let message = failed(jobs, 100);
        assert_eq!((message.count, message.reasons.len()), (1_000, 30));
        assert!(message.text.len() < 2_500, "{}", message.text.len());
        assert!(message.text.contains("600 × other reasons") && message.text.contains("and 100 more"));
        assert!(message.vars().path.contains("999 more"), "{}", message.vars().path);
        assert_eq!(message.json()["jobs"].as_array().unwrap().len(), 900);
    }

    #[test]
    fn a_hostile_name_breaks_no_line_and_its_exact_bytes_are_in_the_json() {
        let message = failed(vec![job(1, b"a\r\nBcc: eve@example.org\x1b[2J\xff.mp4", "it\nfailed")], 0);
        for text in [&message.title, &message.text, &message.vars().path, &message.vars().reason] {
            assert!(!text.contains(['\r', '\n', '\x1b']), "{text:?}");
        }
        let coded = message.json()["jobs"][0]["path_b64"].as_str().unwrap().to_owned();
        assert_eq!(STANDARD.decode(coded).unwrap(), b"a\r\nBcc: eve@example.org\x1b[2J\xff.mp4");
    }

    #[test]
    fn a_text_is_shortened_at_a_character() {
        assert_eq!((shortened("äöü", 3).as_str(), shortened("äöüß", 3).as_str()), ("äöü", "äö…"));
    }
}
