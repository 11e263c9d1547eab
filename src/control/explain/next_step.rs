//! What happens next to a job, when, and what a person can do about it.

use crate::control::transport::protocol::{FactKind, JobFact};
use crate::domain::format::Format;
use crate::domain::job::Job;
use crate::domain::manifest_row::unless_corrected;
use crate::domain::names::Timestamp;
use crate::domain::pause::Pause;
use crate::domain::stage::StageKind;
use crate::domain::zone::Zone;
use crate::output::accepted::is_acceptable;
use crate::wire::timestamps;
use serde_json::{Value, json};

/// What happens next to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextStep {
    pub text: String,
    /// The time of the step, if it is known. It is never in the past.
    pub at: Option<Timestamp>,
    /// The part of the text that says why, if it can be left out.
    why: Option<String>,
}

impl NextStep {
    /// Returns a step whose text has no part that can be left out.
    pub fn new(words: impl Into<String>, at: Option<Timestamp>) -> Self {
        Self { text: words.into(), at, why: None }
    }

    /// Returns the text. Leaves the reason out if `is_said` says that it was printed already.
    pub fn after(&self, is_said: impl Fn(&str) -> bool) -> String {
        match self.why.as_deref().filter(|why| is_said(why)) {
            Some(why) => self.text.replacen(&format!(": {why}"), "", 1),
            None => self.text.clone(),
        }
    }

    /// Returns the next step of a job. `facts` are in the order of [`facts`](super::facts::facts): what holds the job
    /// back comes first.
    pub fn for_job(job: &Job, facts: &[JobFact], now: Timestamp, zone: Zone) -> Self {
        let has_daemon = !facts.iter().any(|fact| fact.kind == FactKind::NoDaemon);
        let holding = facts.iter().find(|fact| fact.holds && fact.kind != FactKind::NoDaemon);
        let Some(due) = job.due else { return Self::new(step_without_due_time(job), None) };
        match holding {
            Some(fact) => {
                let then =
                    if has_daemon { "" } else { "; no daemon runs, so this needs `scribed run` or `scribed once`" };
                let at = fact.until.filter(|until| *until > now && has_daemon);
                let words = format!("{}{then}", step_held_by(fact, now, zone));
                Self { text: words, at, why: Some(fact.words.clone()) }
            }
            None if !has_daemon => {
                let words = "at the next `scribed run` or `scribed once`; no daemon runs, so nothing happens by \
                             itself";
                Self::new(words, None)
            }
            None if due > now => Self::new(format!("at {} or soon after", zone.format_second(due)), Some(due)),
            None => Self::new("now, as soon as a limit permits it", Some(now)),
        }
    }
}

fn step_without_due_time(job: &Job) -> String {
    match job.stage.kind() {
        StageKind::Failed if job.is_unhandled_failure() => format!(
            "nothing by itself{}: `scribed retry {1}` continues it; `scribed acknowledge {1}` acknowledges the \
             failure",
            unless_corrected(job),
            job.id
        ),
        StageKind::Failed => {
            format!("nothing by itself{}: `scribed retry {}` continues it", unless_corrected(job), job.id)
        }
        StageKind::Cancelled => format!("nothing by itself: `scribed retry {}` continues it", job.id),
        StageKind::Written if job.is_unhandled_shortfall() => {
            let id = job.id;
            let has_text =
                || job.outputs.iter().filter_map(|output| Format::of_name(&output.name.lossy())).any(is_acceptable);
            let correct = if job.lacks_only_recognition() && has_text() {
                "; `scribed accept` with an output that you corrected makes it the text"
            } else {
                ""
            };
            format!(
                "nothing by itself: `scribed acknowledge {id}` acknowledges that it is incomplete{correct}; {}",
                completion_commands(job)
            )
        }
        StageKind::Written if job.is_incomplete() => {
            format!("nothing: it was acknowledged with `scribed acknowledge`; {}", completion_commands(job))
        }
        StageKind::Written if job.is_suspect() => format!(
            "nothing by itself: compare its outputs with the recording at the times of the warnings; `scribed \
             acknowledge {}` acknowledges the warnings",
            job.id
        ),
        kind if kind.is_end() => "nothing: it has ended".to_owned(),
        _ => "nothing by itself: it waits for a person's decision".to_owned(),
    }
}

/// Names the commands that may complete the result of an incomplete job.
fn completion_commands(job: &Job) -> String {
    let id = job.id;
    format!(
        "`scribed retry {id}` reads the transcription from the service again, at no cost; `scribed retry --fresh {id}` \
         requests what jobs.toml says now, with another purchase if that differs"
    )
}

fn step_held_by(fact: &JobFact, now: Timestamp, zone: Zone) -> String {
    let by_itself = fact.until.filter(|until| *until > now).map(|until| zone.format_second(until));
    match fact.kind {
        FactKind::Pause => {
            let option = fact.fix.as_deref().unwrap_or_default().trim_matches('`');
            let option = option.strip_prefix("scribed resume").unwrap_or_default();
            let ends = Pause { since: now, until: fact.until }.end_words(option, zone);
            format!("nothing during the pause, until {ends}")
        }
        FactKind::Limit => "when one of those has ended, in processing order".to_owned(),
        FactKind::Outage => "nothing until the service answers again; scribed keeps trying".to_owned(),
        FactKind::Frozen => "nothing until the folder of its source is back".to_owned(),
        _ => match by_itself {
            Some(at) => format!("at {at} or soon after: {}", fact.words),
            None => format!("nothing for now: {}", fact.words),
        },
    }
}

/// Returns a fact as `--json` shows it.
pub fn fact(fact: &JobFact) -> Value {
    json!({
        "kind": fact.kind, "words": fact.words, "holds": fact.holds, "until": fact.until.map(timestamps::format),
        "can": fact.fix,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fault::{Fault, FaultKind};
    use crate::domain::job::{JobKey, Stamp};
    use crate::domain::missing_enrichment::{Enrichment, MissingPart};
    use crate::domain::names::{Hash, JobId, ServiceName, SourceName, TranscriptionId};
    use crate::domain::path::RelPath;
    use crate::domain::stage::{AudioAmount, JobEvent, Stage};
    use crate::domain::token::PurchaseKey;

    fn job(due: i64) -> Job {
        let key = JobKey { source: SourceName::new("s"), path: RelPath::new("a.wav") };
        let stamp = Stamp { size: 1, mtime_ns: 0, ctime_ns: 0, inode: 0 };
        Job::found(JobId(7), key, stamp, Timestamp(0), Timestamp(due))
    }

    fn of(kind: FactKind, until: Option<i64>) -> JobFact {
        let fix = (kind == FactKind::Pause).then(|| "`scribed resume --source s`".to_owned());
        JobFact { kind, words: "so it is".to_owned(), holds: true, until: until.map(Timestamp), fix }
    }

    #[test]
    fn what_has_ended_badly_may_be_acknowledged_once() {
        let fault = Fault::new(FaultKind::Template, "wrong", Timestamp(0));
        let failed = job(0).apply(JobEvent::Failed { fault }, Timestamp(1)).unwrap();
        let written = |unread: Option<&str>| Job {
            stage: Stage::Written {
                purchase_key: PurchaseKey {
                    service: ServiceName::new("x"),
                    content: Hash::of(b"c"),
                    params: Hash::of(b"p"),
                    part: None,
                },
                transcription: TranscriptionId::new("t"),
                audio: AudioAmount::default(),
            },
            missing: vec![MissingPart { enrichment: Enrichment::Diarization, language: None, words: None }],
            unread: unread.map(str::to_owned),
            due: None,
            ..job(0)
        };
        let seen = |job: Job| Job { acknowledged: Some(Timestamp(2)), ..job };
        let all = [failed.clone(), seen(failed), written(None), seen(written(None)), written(Some("languages"))];
        insta::assert_snapshot!(all.iter().map(step_without_due_time).collect::<Vec<_>>().join("\n"), @r"
        nothing by itself: `scribed retry 7` continues it; `scribed acknowledge 7` acknowledges the failure
        nothing by itself: `scribed retry 7` continues it
        nothing by itself: `scribed acknowledge 7` acknowledges that it is incomplete; `scribed retry 7` reads the transcription from the service again, at no cost; `scribed retry --fresh 7` requests what jobs.toml says now, with another purchase if that differs
        nothing: it was acknowledged with `scribed acknowledge`; `scribed retry 7` reads the transcription from the service again, at no cost; `scribed retry --fresh 7` requests what jobs.toml says now, with another purchase if that differs
        nothing by itself: `scribed acknowledge 7` acknowledges that it is incomplete; `scribed retry 7` reads the transcription from the service again, at no cost; `scribed retry --fresh 7` requests what jobs.toml says now, with another purchase if that differs
        ");
    }

    #[test]
    fn the_next_thing_is_never_in_the_past_and_names_what_keeps_it() {
        let now = Timestamp(1_800_000_000_000);
        let later = now.0 + 60_000;
        let cases = [
            (job(later), vec![]),
            (job(5), vec![]),
            (job(5), vec![of(FactKind::NoDaemon, None)]),
            (job(5), vec![of(FactKind::Outage, None)]),
            (job(5), vec![of(FactKind::Pause, None)]),
            (job(5), vec![of(FactKind::Pause, Some(later)), of(FactKind::NoDaemon, None)]),
            (job(5), vec![of(FactKind::Budget, Some(later))]),
            (job(5), vec![of(FactKind::Limit, None)]),
            (job(5).deferred(None, None), vec![]),
        ];
        let told: Vec<String> = cases
            .iter()
            .map(|(job, facts)| {
                let next = NextStep::for_job(job, facts, now, Zone::default());
                assert!(next.at.is_none_or(|at| at >= now));
                format!(
                    "{} [{}]",
                    next.text,
                    next.at.map(|at| Zone::default().format_without_zone(at)).unwrap_or_default()
                )
            })
            .collect();
        insta::assert_snapshot!(told.join("\n"), @r"
        at 2027-01-15 08:01:00 (UTC) or soon after [2027-01-15 08:01:00]
        now, as soon as a limit permits it [2027-01-15 08:00:00]
        at the next `scribed run` or `scribed once`; no daemon runs, so nothing happens by itself []
        nothing until the service answers again; scribed keeps trying []
        nothing during the pause, until `scribed resume --source s` []
        nothing during the pause, until 2027-01-15 08:01:00 (UTC) or `scribed resume --source s`; no daemon runs, so this needs `scribed run` or `scribed once` []
        at 2027-01-15 08:01:00 (UTC) or soon after: so it is [2027-01-15 08:01:00]
        when one of those has ended, in processing order []
        nothing by itself: it waits for a person's decision []
        ");
        let next = NextStep::for_job(
            &job(5),
            &[of(FactKind::Budget, Some(later)), of(FactKind::NoDaemon, None)],
            now,
            Zone::default(),
        );
        assert!(next.after(|_| true).starts_with("at 2027-01-15 08:01:00 (UTC) or soon after; no daemon runs"));
        assert_eq!(next.after(|_| false), next.text);
    }
}
