//! The claim of a source on its folder: carries out what `owner` decides. A run that works in a folder writes itself
//! into the marker before anything is bought, gives signs of life, and records its end. A process that only looks
//! changes nothing.

use crate::clock::{Uptime, boot};
use crate::domain::names::{SourceName, Timestamp};
use crate::domain::path::RelPath;
use crate::domain::time_span::time_span;
use crate::durable_file::Durability;
use crate::permission_errors::describe_error;
use crate::shortage::Shortage;
use crate::source::filter::builtin::MARKER;
use crate::source::mount::marker;
use crate::source::mount::marker::{FolderIdentity, UnknownFolder};
use crate::source::ownership::installation::Installation;
use crate::source::ownership::marker_owner;
use crate::source::ownership::marker_owner::Wrote;
use crate::source::ownership::owner::{
    ClaimingInstallation, FolderPast, Life, MarkerOwner, Owner, OwnershipDecision, OwnershipRefusal, Watched,
    decide_ownership,
};
use crate::source::saved_file;
use crate::wire::timestamps;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A lease ends after this many missed signs of life.
const MISSED_SIGNS: u32 = 3;

/// How long another installation may take over a marker that was emptied while this run worked there: installations
/// look for their folders every half minute.
const YIELD_TIME: Duration = Duration::from_secs(70);

/// How long a claim waits on a file system without locks: two installations may have written at the same moment, and
/// the later write stands.
const WRITE_RACE_WAIT: Duration = Duration::from_secs(3);

/// How often a claim is retried after other writers changed the marker: the sources of a run may claim a folder at the
/// same moment.
const CLAIM_ATTEMPTS: u32 = 8;

/// The intervals by which a run works in a folder.
#[derive(Debug, Clone, Copy)]
pub struct ClaimTerms {
    /// How late new transcriptions may appear in the service's list.
    pub lag: Duration,
    /// The interval between signs of life.
    pub every: Duration,
}

/// The result of a claim that was not refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimResult {
    Open,
    /// The service must be distrusted first, then [`Claim::record_distrust`] called.
    Distrust,
}

/// A moment by the monotonic clock and the wall clock.
#[derive(Debug, Clone, Copy)]
pub struct ClaimMoment {
    pub uptime: Uptime,
    pub wall: Timestamp,
}

/// The claim of one source on its folder.
pub struct Claim {
    source: SourceName,
    folder: PathBuf,
    /// The claim's file in the state directory.
    file: PathBuf,
    installation: Arc<Installation>,
    /// `None` for a process that only looks.
    terms: Option<ClaimTerms>,
    inner: Mutex<Inner>,
}

struct Inner {
    kept: ClaimRecord,
    held: bool,
    /// The count of signs of life in the marker, and when the last one was seen or given.
    sign: (u64, Option<Uptime>),
    closed_until: Option<Uptime>,
    /// The content of a marker that cannot be written, with which the run decided to go on.
    accepted: Option<String>,
    is_warned: bool,
    /// The claim was released and is not taken up again by this run.
    ended: bool,
}

/// The claim's record in the state directory.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct ClaimRecord {
    /// A record of another folder under the same source name does not apply.
    folder: Option<RelPath>,
    past: FolderPast,
    /// The id that the marker had before this installation worked in the folder.
    id: Option<String>,
    /// The folder was taken over, and the service is not yet distrusted.
    pending: bool,
    /// The owners that were seen, by folder, with the uptime; valid only for this start (`boot`) of the machine.
    boot: String,
    watched: BTreeMap<String, SeenOwner>,
}

#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct SeenOwner {
    what: String,
    millis: u64,
}

impl Claim {
    /// Reads the claim's record from `file`.
    pub fn new(
        source: &SourceName,
        folder: &Path,
        file: PathBuf,
        installation: Arc<Installation>,
        terms: Option<ClaimTerms>,
    ) -> Self {
        let kept = load(&file, folder);
        let inner = Inner {
            kept,
            held: false,
            sign: (0, None),
            closed_until: None,
            accepted: None,
            is_warned: false,
            ended: false,
        };
        let (source, folder) = (source.clone(), folder.to_owned());
        Self { source, folder, file, installation, terms, inner: Mutex::new(inner) }
    }

    /// Checks that this run may work in the folder. A run with terms claims it, and gives signs of life. Blocks.
    ///
    /// # Errors
    /// [`UnknownFolder`].
    pub fn check_or_acquire(
        &self,
        known: Option<&FolderIdentity>,
        at: ClaimMoment,
    ) -> Result<ClaimResult, UnknownFolder> {
        for _ in 0..CLAIM_ATTEMPTS {
            if let Some(answer) = self.decide(known, at, self.terms.is_some())? {
                return Ok(answer);
            }
        }
        let then = "scribed tries again in a moment".to_owned();
        Err(refused("is being claimed by several installations at this moment".to_owned(), then))
    }

    /// Checks that no other installation works in a folder whose marker is not the known one. Blocks.
    ///
    /// # Errors
    /// [`UnknownFolder`].
    pub fn peek(&self, at: ClaimMoment) -> Result<(), UnknownFolder> {
        self.decide(None, at, false).map(drop)
    }

    /// Notes that this run is about to create the folder's marker: a source that finds it without an owner then knows
    /// that no other installation was there.
    pub fn note_marker_creation(&self) {
        if self.terms.is_some() && matches!(marker_owner::found(&self.folder), Ok(MarkerOwner::Nothing)) {
            self.installation.note_marker_creation(&self.folder);
        }
    }

    /// Returns the id that the marker had before this installation worked in the folder.
    pub fn foreign_marker_id(&self) -> Option<FolderIdentity> {
        self.inner().kept.id.clone().map(FolderIdentity::Marker)
    }

    /// Returns `None` if the marker was changed meanwhile, for example by another source of this run.
    fn decide(
        &self,
        known: Option<&FolderIdentity>,
        at: ClaimMoment,
        works: bool,
    ) -> Result<Option<ClaimResult>, UnknownFolder> {
        // The state directory may have been replaced: then writes would go into that of another installation.
        if self.terms.is_some() && !self.installation.is_state_directory_unchanged() {
            return Err(self.state_replaced());
        }
        let found = match marker_owner::found(&self.folder) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let why = describe_error(&error, &self.folder.join(MARKER));
                return Err(refused(
                    format!(
                        "has a marker that scribed cannot read ({why}), so another installation may use the folder"
                    ),
                    format!("scribed does nothing for it until this user may read and write the file {MARKER} in it"),
                ));
            }
            // It says nothing about the folder, which is looked at again.
            Err(error) if Shortage::of(&error).is_some() => return Err(UnknownFolder::Away(error.to_string())),
            Err(error) => {
                self.warn_unguarded(&describe_error(&error, &self.folder.join(MARKER)));
                return Ok(Some(ClaimResult::Open));
            }
        };
        let mut inner = self.inner();
        if inner.ended {
            let then = "scribed starts nothing more there".to_owned();
            return Err(refused("is no longer used by this run".to_owned(), then));
        }
        self.check_folders_above(&mut inner, at)?;
        let me = self.this_owner();
        // Another source of this run may be creating the marker at this moment.
        let is_new = matches!(found, MarkerOwner::Blank | MarkerOwner::Nobody { damaged: false });
        let is_own = || is_new && self.installation.has_marked(&self.folder);
        let is_first = works && known.is_none() && inner.kept.past.runs.is_empty();
        if is_first && found != MarkerOwner::Nothing && !is_own() {
            inner.kept.past.met = true;
            inner.kept.id =
                marker::read(&self.folder).ok().flatten().filter(|id| !id.is_empty()).or(inner.kept.id.take());
        }
        let life = self.owner_life(&found);
        let key = change_key(&found, life);
        let unchanged = self.unchanged_for(&mut inner, String::new(), &key, at.uptime);
        let past = inner.kept.past.clone();
        let asker = ClaimingInstallation { me: &me, past: &past, held: inner.held };
        let decided = decide_ownership(&found, &asker, life, Watched { unchanged, yields: self.yield_time() });
        match (decided, found) {
            (OwnershipDecision::Taken { left, copy }, MarkerOwner::Owned(owner)) => {
                Err(self.refuse_taken(&mut inner, &owner, left, copy))
            }
            (OwnershipDecision::Yielded { left }, _) => Err(yielded(left)),
            _ if !works => Ok(Some(ClaimResult::Open)),
            (OwnershipDecision::Held, MarkerOwner::Owned(owner)) => {
                self.give_sign_of_life(&mut inner, *owner, at);
                self.open_or_wait(&mut inner, at).map(Some)
            }
            // The folder is marked when a file is seen in it.
            (OwnershipDecision::Free { .. }, MarkerOwner::Blank)
                if !matches!(known, Some(FolderIdentity::Marker(_))) =>
            {
                Ok(Some(ClaimResult::Open))
            }
            (OwnershipDecision::Free { .. }, _) if inner.accepted.as_ref() == Some(&key) => {
                self.open_or_wait(&mut inner, at).map(Some)
            }
            (OwnershipDecision::Free { doubtful }, found) => {
                match self.write_claim(&mut inner, known, (found, key), doubtful, at)? {
                    true => self.open_or_wait(&mut inner, at).map(Some),
                    false => Ok(None),
                }
            }
            (OwnershipDecision::Held | OwnershipDecision::Taken { .. }, _) => {
                drop(inner);
                if let Some(FolderIdentity::FileSystem(_)) = known {
                    self.warn_unguarded("scribed cannot write there");
                }
                Ok(Some(ClaimResult::Open))
            }
        }
    }

    /// Records that the service is durably distrusted: its list is read before anything is bought there.
    pub fn record_distrust(&self) -> io::Result<()> {
        let mut inner = self.inner();
        inner.kept.pending = false;
        self.save(&inner.kept)
    }

    /// Whether a sign of life is due.
    pub fn is_due(&self, now: Uptime) -> bool {
        let inner = self.inner();
        let every = self.terms.map(|terms| terms.every);
        inner.held && every.zip(inner.sign.1).is_some_and(|(every, last)| now.since(last) >= every)
    }

    /// Returns how long until work in the folder may begin, if waiting alone is enough.
    pub fn remaining_wait(&self, now: Uptime) -> Option<Duration> {
        let inner = self.inner();
        inner.closed_until.filter(|_| inner.held || inner.accepted.is_some()).map(|until| until.since(now))
    }

    /// Records in the marker that this run has ended, so that the next one need not wait. The claim is not taken up
    /// again. Blocks.
    pub fn release(&self, wall: Timestamp) {
        {
            let mut inner = self.inner();
            (inner.held, inner.ended) = (false, self.terms.is_some());
        }
        if self.terms.is_none() || !self.installation.is_state_directory_unchanged() {
            return;
        }
        let Ok(found @ MarkerOwner::Owned(_)) = marker_owner::found(&self.folder) else { return };
        let MarkerOwner::Owned(owner) = &found else { return };
        if owner.run == self.installation.run && !owner.released {
            let ended = Owner { released: true, alive: timestamps::format(wall), ..(**owner).clone() };
            if let Err(error) = marker_owner::write(&self.folder, "", &found, &ended) {
                let error = describe_error(&error, &self.folder.join(MARKER));
                tracing::debug!(source = %self.source, error, "cannot note the end of this run in the folder's marker");
            }
        }
    }

    fn this_owner(&self) -> Owner {
        self.installation.owner()
    }

    fn owner_life(&self, found: &MarkerOwner) -> Life {
        match found {
            MarkerOwner::Owned(owner) => self.installation.process_state(owner),
            _ => Life::Unknown,
        }
    }

    fn lag(&self) -> Duration {
        self.terms.map_or(Duration::ZERO, |terms| terms.lag)
    }

    fn yield_time(&self) -> Duration {
        YIELD_TIME.min(self.terms.map_or(YIELD_TIME, |terms| terms.every))
    }

    /// Refuses if another installation works in a folder above this one. Checks folders on the same file system only:
    /// to look up a name on others might trigger an automount.
    fn check_folders_above(&self, inner: &mut Inner, at: ClaimMoment) -> Result<(), UnknownFolder> {
        let me = self.this_owner();
        let Ok(real) = self.folder.canonicalize() else { return Ok(()) };
        let Ok(device) = fs::metadata(&real).map(|meta| meta.dev()) else { return Ok(()) };
        for above in real.ancestors().skip(1) {
            if !fs::metadata(above).is_ok_and(|meta| meta.dev() == device) {
                return Ok(());
            }
            let Ok(found @ MarkerOwner::Owned(_)) = marker_owner::found(above) else { continue };
            let (life, name) = (self.owner_life(&found), above.to_string_lossy().into_owned());
            let unchanged = self.unchanged_for(inner, name, &change_key(&found, life), at.uptime);
            let past = FolderPast::default();
            let asker = ClaimingInstallation { me: &me, past: &past, held: false };
            let decided = decide_ownership(&found, &asker, life, Watched { unchanged, yields: self.yield_time() });
            if let (OwnershipDecision::Taken { left, copy: false }, MarkerOwner::Owned(owner)) = (decided, &found) {
                if self.terms.is_some() {
                    // Saved so that the next run of `once` goes on counting.
                    let _ = self.save_if_changed(inner);
                }
                return Err(in_use(&format!("is inside {}, which", above.display()), owner, left, false));
            }
        }
        Ok(())
    }

    /// Returns for how long a folder's owner has been seen unchanged, and starts to count if it changed.
    fn unchanged_for(&self, inner: &mut Inner, folder: String, what: &str, now: Uptime) -> Duration {
        let millis = u64::try_from(now.0.as_millis()).unwrap_or(u64::MAX);
        let boot = boot();
        if inner.kept.boot != boot {
            // The times are of another start of the machine.
            inner.kept.watched.clear();
            inner.kept.boot = boot;
        }
        if let Some(seen) = inner.kept.watched.get(&folder).filter(|seen| seen.what == what && seen.millis <= millis) {
            return Duration::from_millis(millis - seen.millis);
        }
        inner.kept.watched.insert(folder, SeenOwner { what: what.to_owned(), millis });
        Duration::ZERO
    }

    fn refuse_taken(&self, inner: &mut Inner, owner: &Owner, left: Option<Duration>, copy: bool) -> UnknownFolder {
        if self.terms.is_some() {
            (inner.held, inner.closed_until) = (false, None);
            inner.kept.past = FolderPast { runs: Vec::new(), met: true };
            // Saved so that the next pass goes on counting. If that fails, it starts from zero.
            let _ = self.save_if_changed(inner);
        }
        in_use("", owner, left, copy)
    }

    /// Gives a sign of life if one is due.
    fn give_sign_of_life(&self, inner: &mut Inner, owner: Owner, at: ClaimMoment) {
        let is_news = !inner.kept.past.runs.contains(&owner.run);
        if is_news {
            // Another source of this run has claimed the folder: if that was a take-over, it counts for this source
            // too.
            inner.kept.past.runs.insert(0, owner.run.clone());
            inner.kept.past.runs.truncate(2);
            inner.kept.pending |= owner.took_over;
            let _ = self.save(&inner.kept);
        }
        inner.held = true;
        if inner.sign.1.is_none() || inner.sign.0 != owner.renewals {
            inner.sign = (owner.renewals, Some(at.uptime));
        }
        let every = self.terms.map_or(Duration::MAX, |terms| terms.every);
        let is_due = inner.sign.1.is_none_or(|last| at.uptime.since(last) >= every);
        if !is_due && !owner.released {
            return;
        }
        let renewals = owner.renewals + 1;
        let alive = timestamps::format(at.wall);
        let sign = Owner { renewals, alive, released: false, ..owner.clone() };
        match marker_owner::write(&self.folder, "", &MarkerOwner::Owned(Box::new(owner)), &sign) {
            Ok(Wrote::Overtaken) => {}
            Ok(_) => inner.sign = (renewals, Some(at.uptime)),
            Err(error) => {
                let error = describe_error(&error, &self.folder.join(MARKER));
                tracing::warn!(source = %self.source, error, "cannot update the time of the last sign of life in the folder's marker");
            }
        }
    }

    /// Writes this run into the marker and returns true. The record is written first, so that nothing is bought twice
    /// after a crash in between. Returns false if the marker was changed meanwhile.
    fn write_claim(
        &self,
        inner: &mut Inner,
        known: Option<&FolderIdentity>,
        (found, key): (MarkerOwner, String),
        doubtful: bool,
        at: ClaimMoment,
    ) -> Result<bool, UnknownFolder> {
        let mut me = self.this_owner();
        let mut runs = vec![me.run.clone()];
        if let MarkerOwner::Owned(owner) = &found {
            runs.extend(inner.kept.past.runs.iter().find(|run| **run == owner.run).cloned());
        }
        inner.kept.past.runs = runs;
        inner.kept.pending |= doubtful;
        let kept = self.save(&inner.kept);
        kept.map_err(|error| {
            let path = self.installation.path.display().to_string();
            let why = format!(
                "cannot be claimed: scribed cannot write to the state directory {path} ({})",
                describe_error(&error, &self.installation.path)
            );
            refused(why, "scribed does nothing for it until it can write there".to_owned())
        })?;
        (me.since, me.alive) = (timestamps::format(at.wall), timestamps::format(at.wall));
        me.took_over = inner.kept.pending;
        let every = self.terms.map_or(Duration::ZERO, |terms| terms.every);
        me.term_seconds = (every * MISSED_SIGNS).as_secs();
        let id = match known {
            Some(FolderIdentity::Marker(id)) => id.clone(),
            _ => String::new(),
        };
        match marker_owner::write(&self.folder, &id, &found, &me) {
            Ok(Wrote::Overtaken) => return Ok(false),
            Ok(wrote) => {
                (inner.held, inner.sign) = (true, (0, Some(at.uptime)));
                let settles = if wrote == Wrote::Unlocked { WRITE_RACE_WAIT } else { Duration::ZERO };
                let wait = if inner.kept.pending { settles.max(self.lag()) } else { settles };
                inner.closed_until = (!wait.is_zero()).then(|| at.uptime.after(wait));
            }
            Err(error) if Shortage::of(&error).is_some() => return Err(UnknownFolder::Away(error.to_string())),
            Err(error) => {
                inner.accepted = Some(key);
                self.warn_unguarded_once(inner, &unwritable(&error, &self.folder.join(MARKER)));
            }
        }
        if doubtful {
            self.log_takeover(&found);
        }
        Ok(true)
    }

    fn log_takeover(&self, found: &MarkerOwner) {
        let from = match found {
            MarkerOwner::Owned(owner) => owner.described(),
            _ => "an installation that did not name itself".to_owned(),
        };
        tracing::warn!(
            source = %self.source, folder = %self.folder.display(), %from,
            "this installation takes over the folder; before it buys anything, it reads the list \
             of the service for purchases that its queue does not know"
        );
    }

    /// Opens the folder, or refuses as long as the list may lack what another installation bought.
    fn open_or_wait(&self, inner: &mut Inner, at: ClaimMoment) -> Result<ClaimResult, UnknownFolder> {
        let is_pending = inner.kept.pending;
        if is_pending && inner.closed_until.is_none() {
            inner.closed_until = Some(at.uptime.after(self.lag()));
        }
        let left = inner.closed_until.map(|until| until.since(at.uptime)).unwrap_or_default();
        if left.is_zero() {
            inner.closed_until = None;
            return Ok(if is_pending { ClaimResult::Distrust } else { ClaimResult::Open });
        }
        let why = "was used by another installation and is being taken over".to_owned();
        let then = format!(
            "it continues by itself in {}: until then the service's list may lack what the other installation \
             bought",
            shown(left)
        );
        Err(UnknownFolder::Refused(OwnershipRefusal { why, then, waits: Some(left) }))
    }

    /// Warns once that a second installation would not be noticed.
    fn warn_unguarded(&self, why: &str) {
        self.warn_unguarded_once(&mut self.inner(), why);
    }

    fn warn_unguarded_once(&self, inner: &mut Inner, why: &str) {
        if self.terms.is_some() && !std::mem::replace(&mut inner.is_warned, true) {
            tracing::warn!(
                source = %self.source, folder = %self.folder.display(), reason = %why,
                "cannot write the owner of the folder into its marker: if a second installation used the folder, \
                 neither would notice, and it would buy everything again"
            );
        }
    }

    fn state_replaced(&self) -> UnknownFolder {
        let state = self.installation.path.display();
        let why = format!(
            "is not used any more: the state directory {state} was deleted or replaced while scribed runs on it"
        );
        refused(why, "scribed buys nothing more; restart it".to_owned())
    }

    fn save_if_changed(&self, inner: &Inner) -> io::Result<()> {
        if load(&self.file, &self.folder) == inner.kept { Ok(()) } else { self.save(&inner.kept) }
    }

    fn save(&self, kept: &ClaimRecord) -> io::Result<()> {
        let folder = Some(RelPath::new(self.folder.as_os_str().as_bytes()));
        let kept = ClaimRecord { folder, ..kept.clone() };
        saved_file::save(&self.file, "claim-tmp", &kept, Durability::Synced)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the record. An unreadable record counts as empty: then a take-over is assumed more often than necessary.
fn load(file: &Path, folder: &Path) -> ClaimRecord {
    let own = RelPath::new(folder.as_os_str().as_bytes());
    let read = fs::read(file).ok().and_then(|bytes| serde_json::from_slice::<ClaimRecord>(&bytes).ok());
    let kept = read.filter(|kept| kept.folder.as_ref() == Some(&own));
    kept.unwrap_or_else(|| ClaimRecord { folder: Some(own), ..ClaimRecord::default() })
}

/// Returns a text that changes with each sign of life.
fn change_key(found: &MarkerOwner, life: Life) -> String {
    match found {
        MarkerOwner::Owned(owner) => format!("{} {} {} {life:?}", owner.run, owner.renewals, owner.released),
        other => format!("{other:?}"),
    }
}

fn unwritable(error: &io::Error, marker: &Path) -> String {
    match error.kind() {
        io::ErrorKind::InvalidData => {
            format!("the file {MARKER} in it has content that scribed did not write; empty the file")
        }
        _ => format!("cannot write the file {MARKER} in it: {}", describe_error(error, marker)),
    }
}

fn in_use(place: &str, owner: &Owner, left: Option<Duration>, copy: bool) -> UnknownFolder {
    let who = if copy { "a copy of this state directory" } else { "another installation of scribed" };
    let place = if place.is_empty() { String::new() } else { format!("{place} ") };
    let why = format!("{place}is in use by {who}: {}", owner.described());
    let by_itself = left.map(|left| {
        let left = shown(left);
        format!(", and this one takes over by itself after another {left} without a sign of life")
    });
    let then = format!(
        "scribed does nothing for it here{}. Use each folder with one installation only. To take over now, stop \
         the other one; if that is not possible, empty the file {MARKER} in the folder",
        by_itself.unwrap_or_default()
    );
    refused(why, then)
}

fn yielded(left: Duration) -> UnknownFolder {
    let then =
        format!("another installation may take it over now; if none does, this one continues in {}", shown(left));
    UnknownFolder::Refused(OwnershipRefusal {
        why: "has an empty marker: a person emptied it".to_owned(),
        then,
        waits: None,
    })
}

fn refused(why: String, then: String) -> UnknownFolder {
    UnknownFolder::Refused(OwnershipRefusal { why, then, waits: None })
}

/// Shows a wait in seconds, rounded up.
fn shown(left: Duration) -> String {
    time_span(Duration::from_secs(left.as_secs() + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::mount::marker::identify;
    use std::path::Path;
    use tempfile::TempDir;

    const LAG: Duration = Duration::from_secs(120);
    const EVERY: Duration = Duration::from_secs(900);

    fn at(seconds: u64) -> ClaimMoment {
        ClaimMoment { uptime: Uptime(Duration::from_secs(seconds)), wall: Timestamp(0) }
    }

    /// Installations beside each other on one folder, each on a machine of its own.
    struct Site {
        top: TempDir,
        known: FolderIdentity,
    }

    impl Site {
        fn new() -> Self {
            let top = TempDir::new().unwrap();
            fs::create_dir(top.path().join("media")).unwrap();
            let known = identify(&top.path().join("media"), None).unwrap();
            Self { top, known }
        }

        fn media(&self) -> PathBuf {
            self.top.path().join("media")
        }

        fn run(&self, state: &str, folder: &Path) -> Claim {
            let state = self.top.path().join(state);
            let host = state.to_string_lossy().into_owned();
            let installation = Arc::new(Installation { host, ..Installation::for_work(&state).unwrap() });
            let terms = Some(ClaimTerms { lag: LAG, every: EVERY });
            Claim::new(&SourceName::new("s"), folder, state.join("s.claim"), installation, terms)
        }

        fn works(&self, state: &str) -> Claim {
            self.run(state, &self.media())
        }

        fn look(&self, claim: &Claim, seconds: u64) -> Result<ClaimResult, OwnershipRefusal> {
            claim.check_or_acquire(Some(&self.known), at(seconds)).map_err(|stranger| match stranger {
                UnknownFolder::Refused(refused) => refused,
                other => panic!("{other}"),
            })
        }

        fn owner(&self) -> Owner {
            match marker_owner::found(&self.media()).unwrap() {
                MarkerOwner::Owned(owner) => *owner,
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_sign_of_life_is_given_when_it_is_time_and_not_more_often() {
        let site = Site::new();
        let claim = site.works("a");
        for second in (0..1800).step_by(10) {
            if second % 60 == 0 {
                assert_eq!(claim.is_due(at(second).uptime), second == 900, "{second}");
            }
            assert_eq!(site.look(&claim, second), Ok(ClaimResult::Open));
        }
        assert_eq!(site.owner().renewals, 1);
        assert_eq!(site.owner().term_seconds, 3 * 900);
        claim.release(Timestamp(0));
        assert!(site.owner().released);
    }

    #[test]
    fn a_lease_ends_when_no_sign_of_life_was_seen_for_its_term() {
        let site = Site::new();
        let (first, second) = (site.works("a"), site.works("b"));
        assert_eq!(site.look(&first, 0), Ok(ClaimResult::Open));
        assert!(site.look(&second, 10).unwrap_err().why.contains("another installation"));
        assert_eq!(site.look(&first, 910), Ok(ClaimResult::Open), "a sign of life");
        assert!(site.look(&second, 2_000).is_err());
        assert!(site.look(&second, 4_690).unwrap_err().then.contains("another 11 s"), "2,700 s from when it was seen");
        // Another process of it goes on counting; by the clock of another start of the machine nobody does.
        let again = site.works("b");
        assert!(site.look(&again, 4_695).unwrap_err().then.contains("another 6 s"));
        let waits = site.look(&again, 4_700).unwrap_err();
        assert_eq!(waits.waits, Some(LAG), "it is taken, and the list is waited for: {waits:?}");
        assert_eq!(site.owner().run, again.installation.run);
        assert!(site.look(&first, 4_701).is_err(), "the first one is out");
        assert_eq!(again.remaining_wait(at(4_760).uptime), Some(Duration::from_secs(60)));
        assert_eq!(site.look(&again, 4_820), Ok(ClaimResult::Distrust));
        again.record_distrust().unwrap();
        assert_eq!(site.look(&again, 4_821), Ok(ClaimResult::Open));
    }

    #[test]
    fn who_is_killed_while_it_takes_over_looks_at_the_list_all_the_same() {
        let site = Site::new();
        let first = site.works("a");
        assert_eq!(site.look(&first, 0), Ok(ClaimResult::Open));
        first.release(Timestamp(0));
        assert!(site.look(&site.works("b"), 5).unwrap_err().waits.is_some());
        let again = site.works("b");
        assert_eq!(site.look(&again, 100).unwrap_err().waits, Some(LAG), "it begins anew");
        assert_eq!(site.look(&again, 220), Ok(ClaimResult::Distrust));
        // Not yet distrusted: it is asked for again, and again.
        assert!(site.look(&again, 221).is_err());
        assert_eq!(site.look(&again, 341), Ok(ClaimResult::Distrust));
    }

    #[test]
    fn an_older_copy_of_the_state_that_was_put_back_looks_at_the_list() {
        let site = Site::new();
        let claim = site.works("a");
        assert_eq!(site.look(&claim, 0), Ok(ClaimResult::Open));
        let backup = fs::read(site.top.path().join("a/s.claim")).unwrap();
        for _ in 0..3 {
            assert_eq!(site.look(&site.works("a"), 10), Ok(ClaimResult::Open), "one's own runs after each other");
        }
        fs::write(site.top.path().join("a/s.claim"), backup).unwrap();
        assert_eq!(site.look(&site.works("a"), 20).unwrap_err().waits, Some(LAG));
    }

    #[test]
    fn two_sources_of_one_run_share_a_folder_and_what_was_taken_over() {
        let site = Site::new();
        site.look(&site.works("other"), 0).unwrap();
        let one = site.works("a");
        let state = site.top.path().join("a");
        let two = || {
            let (name, file) = (SourceName::new("two"), state.join("two.claim"));
            Claim::new(&name, &site.media(), file, Arc::clone(&one.installation), one.terms)
        };
        assert!(site.look(&one, 0).is_err() && site.look(&two(), 0).is_err());
        assert_eq!(site.look(&one, 3_000).unwrap_err().waits, Some(LAG));
        let two = two();
        assert_eq!(site.look(&two, 3_001).unwrap_err().waits, Some(LAG), "its service has a list, too");
        assert_eq!(site.look(&one, 3_120), Ok(ClaimResult::Distrust));
        one.record_distrust().unwrap();
        assert_eq!(site.look(&two, 3_121), Ok(ClaimResult::Distrust));
        two.record_distrust().unwrap();
        assert_eq!((site.look(&one, 3_200), site.look(&two, 3_200)), (Ok(ClaimResult::Open), Ok(ClaimResult::Open)));
        assert_eq!((site.look(&one, 4_100), site.look(&two, 4_100)), (Ok(ClaimResult::Open), Ok(ClaimResult::Open)));
        assert_eq!(site.owner().renewals, 1, "one of them gives the sign of life");
    }

    #[test]
    fn sources_of_one_run_that_come_at_the_same_moment_all_have_the_folder() {
        for _ in 0..50 {
            let site = Site::new();
            let one = site.works("a");
            std::thread::scope(|scope| {
                let all = ["one", "two", "three", "four"].map(|name| {
                    let (file, installation) = (site.top.path().join(name), Arc::clone(&one.installation));
                    let claim = Claim::new(&SourceName::new(name), &site.media(), file, installation, one.terms);
                    scope.spawn(|| site.look(&{ claim }, 0))
                });
                all.into_iter().for_each(|one| assert_eq!(one.join().unwrap(), Ok(ClaimResult::Open)));
            });
        }
    }

    #[test]
    fn a_folder_within_anothers_folder_is_not_ones_own() {
        let site = Site::new();
        let inner = site.media().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let known = identify(&inner, None).unwrap();
        assert_eq!(site.look(&site.works("a"), 0), Ok(ClaimResult::Open));
        let (same, other) = (site.run("a", &inner), site.run("b", &inner));
        let error = other.check_or_acquire(Some(&known), at(0)).unwrap_err().to_string();
        assert!(error.starts_with("is inside ") && error.contains("media, which is in use by another"), "{error}");
        assert_eq!(
            same.check_or_acquire(Some(&known), at(0)),
            Ok(ClaimResult::Open),
            "two sources of one installation"
        );
    }

    #[test]
    fn a_dead_lease_of_a_folder_above_runs_out_for_runs_that_only_look_once_each() {
        let site = Site::new();
        let inner = site.media().join("a");
        fs::create_dir_all(&inner).unwrap();
        let known = identify(&inner, None).unwrap();
        assert_eq!(site.look(&site.works("a"), 0), Ok(ClaimResult::Open));
        for second in [10, 900, 2_700] {
            assert!(site.run("b", &inner).check_or_acquire(Some(&known), at(second)).is_err(), "{second}");
        }
        assert!(site.run("b", &inner).check_or_acquire(Some(&known), at(2_710)).is_ok());
    }

    #[test]
    fn a_claim_that_was_given_back_is_never_taken_up_again() {
        let site = Site::new();
        let claim = site.works("a");
        assert_eq!(site.look(&claim, 0), Ok(ClaimResult::Open));
        claim.release(Timestamp(0));
        assert!(site.look(&claim, 1).is_err() && site.look(&claim, 2_000).is_err());
        assert!(site.owner().released);
        let again = site.works("a");
        assert_eq!(site.look(&again, 2_001), Ok(ClaimResult::Open), "the source came back");
    }

    #[test]
    fn a_marker_that_another_source_of_this_run_has_just_made_was_nobodys() {
        let site = Site::new();
        let folder = site.top.path().join("new");
        fs::create_dir(&folder).unwrap();
        let one = site.run("a", &folder);
        let file = site.top.path().join("a/two.claim");
        let two = Claim::new(&SourceName::new("two"), &folder, file, Arc::clone(&one.installation), one.terms);
        one.note_marker_creation();
        fs::write(folder.join(MARKER), "").unwrap(); // as it is for a moment while it is made
        assert_eq!(two.check_or_acquire(None, at(0)).ok(), Some(ClaimResult::Open));
        fs::remove_file(folder.join(MARKER)).unwrap();
        let known = identify(&folder, None).unwrap();
        assert_eq!(two.check_or_acquire(None, at(0)).ok(), Some(ClaimResult::Open));
        assert_eq!(one.check_or_acquire(Some(&known), at(0)).ok(), Some(ClaimResult::Open));
        assert!(!two.inner().kept.pending && !one.inner().kept.pending);
        let other = site.run("b", &folder);
        one.release(Timestamp(0));
        assert!(other.check_or_acquire(None, at(0)).is_err(), "another installation looks at the list");
    }

    #[test]
    fn who_only_looks_writes_nothing() {
        let site = Site::new();
        site.look(&site.works("a"), 0).unwrap();
        let files = || {
            let read = |path: PathBuf| (fs::read(&path).unwrap(), path);
            let all = walkdir::WalkDir::new(site.top.path()).into_iter().flatten();
            let mut all: Vec<_> =
                all.filter(|one| one.file_type().is_file()).map(|one| read(one.into_path())).collect();
            all.sort();
            all
        };
        let before = files();
        let observing = Arc::new(Installation::for_observation(&site.top.path().join("new")));
        let file = site.top.path().join("new/s.claim");
        let observer = Claim::new(&SourceName::new("s"), &site.media(), file, observing, None);
        assert!(
            observer.check_or_acquire(None, at(0)).is_err()
                && observer.check_or_acquire(Some(&site.known), at(9_999)).is_ok()
        );
        assert_eq!(files(), before);
    }
}
