//! Puts a job's outputs into a bucket beside its object: a part of the write, as `output::publish` is for folders.
//! Each output appears whole, since a server shows an object only when it has all of it.

use crate::crash_points::{self, Point};
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::job::{Job, Output};
use crate::domain::names::{Hash, Timestamp};
use crate::domain::path::RelPath;
use crate::output::publish::{Names, OwnOutputs, PendingOutput, RESULT_KEPT};
use crate::output::relocated::{self, KeptOutput, Occupant, Relocation};
use crate::pipeline::stages::faults::folder_away;
use crate::source::bucket::bucket_view::{Bucket, Object, Put};
use crate::source::mount::source_mount::Mount;
use bytes::Bytes;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The largest object that can be an output of ours.
const LONGEST_OURS: u64 = 256 << 20;

/// How often a name is looked at that changes meanwhile, or whose put has no answer.
const LOOKS: usize = 3;

/// Puts the outputs beside the job's object, and returns them in the order of `wanted`. An object that is there and
/// not among `ours` is left alone, and the output gets the next name.
///
/// A fault. What was put before stays, and a later call finishes the rest.
/// A fault in words; what was put before it stays, and a later call finishes what this one left.
pub async fn run<N: Names>(
    bucket: &Bucket,
    mount: &Mount,
    job: &Job,
    wanted: Vec<PendingOutput<N>>,
    ours: &OwnOutputs,
    now: Timestamp,
) -> Result<Vec<Output>, Fault> {
    let beside = Path::new(OsStr::from_bytes(job.key.path.as_bytes())).parent().unwrap_or(Path::new(""));
    let deposit = Deposit { bucket, beside, ours };
    let kept = match deposit.relocated(&wanted).await {
        Ok(kept) => kept,
        Err(error) => return Err(unwritable(mount, error, now).await),
    };
    let stay: Vec<OsString> = kept.iter().flatten().map(|kept| kept.name.clone()).collect();
    let mut outputs: Vec<Output> = Vec::with_capacity(wanted.len());
    for (wanted, kept) in wanted.into_iter().zip(kept) {
        if let Some(KeptOutput { name, hash }) = kept {
            outputs.push(Output { name: RelPath::new(name.as_bytes()), hash, at: None });
            continue;
        }
        match deposit.put(wanted, &outputs, &stay).await {
            Ok(output) => outputs.push(output),
            Err(error) => return Err(unwritable(mount, error, now).await),
        }
        crash_points::point(Point::OutputNamed);
    }
    Ok(outputs)
}

/// Why an output is not in its place.
#[derive(Debug, thiserror::Error)]
enum DepositError {
    #[error("no permission to write {file}: {error}; give the bucket's key the right to put objects: {RESULT_KEPT}")]
    NoPermission { file: String, error: io::Error },
    #[error("objects that scribed did not write have every name for {file}; move some of them: {RESULT_KEPT}")]
    NoFreeName { file: String },
    #[error("cannot write {file}: {error}; {RESULT_KEPT}")]
    Io { file: String, error: io::Error },
}

async fn unwritable(mount: &Mount, error: DepositError, now: Timestamp) -> Fault {
    match mount.check_now().await {
        Ok(()) => Fault::new(FaultKind::Unwritable, error.to_string(), now),
        Err(away) => folder_away(&away, now),
    }
}

/// What one call works with.
struct Deposit<'a> {
    bucket: &'a Bucket,
    beside: &'a Path,
    ours: &'a OwnOutputs,
}

/// What there is under a name.
enum Found {
    Nothing,
    /// The content that is wanted there.
    Same,
    Ours(Object),
    Foreign,
}

impl Deposit<'_> {
    /// Returns for each output the object that came with the recording and stays. Looks first at what there is under
    /// the names.
    async fn relocated<N: Names>(&self, wanted: &[PendingOutput<N>]) -> Result<Vec<Option<KeptOutput>>, DepositError> {
        let Some(relocation) = &self.ours.relocation else { return Ok(wanted.iter().map(|_| None).collect()) };
        let mut occupants = HashMap::new();
        for (n, wanted) in wanted.iter().enumerate() {
            for name in wanted.candidates.clone() {
                let occupant = self.occupant(&name, relocation, &wanted.bytes).await;
                let occupant = occupant.map_err(|error| self.failed(&name, error))?;
                let is_last = matches!(occupant, Occupant::Nothing | Occupant::Own);
                occupants.insert((n, name), occupant);
                if is_last {
                    break;
                }
            }
        }
        let mut look = |n, name: &OsStr| occupants.remove(&(n, name.to_owned())).unwrap_or(Occupant::Nothing);
        Ok(relocation.recognised(wanted, &mut look))
    }

    async fn occupant(&self, name: &OsStr, relocation: &Relocation, wanted: &[u8]) -> io::Result<Occupant> {
        if self.ours.of_others.contains(name) {
            return Ok(Occupant::Neighbours);
        }
        let path = self.path(name);
        let Some(object) = self.bucket.head(&path).await? else { return Ok(Occupant::Nothing) };
        if !relocated::lengths(wanted).contains(&object.stamp.size) {
            return Ok(Occupant::OtherFile);
        }
        let bytes = self.bucket.read_range(&path, object.stamp.size.max(1), false).await?;
        let is_placed = self.ours.published.iter().any(|(placed, _)| placed == name);
        if is_placed && self.hashes_for(name).any(|known| known == Hash::of(&bytes)) {
            return Ok(Occupant::Own);
        }
        if let Some(recording) = relocated::recording_in_json(&bytes).filter(|named| *named != relocation.recording)
            && self.bucket.head(&self.path(&recording)).await?.is_some()
        {
            return Ok(Occupant::Neighbours);
        }
        Ok(Occupant::File(bytes))
    }

    async fn put<N: Names>(
        &self,
        wanted: PendingOutput<N>,
        placed: &[Output],
        stay: &[OsString],
    ) -> Result<Output, DepositError> {
        let (hash, bytes) = (Hash::of(&wanted.bytes), Bytes::from(wanted.bytes));
        let mut first = None;
        for name in wanted.candidates {
            let output = Output { name: RelPath::new(name.as_bytes()), hash, at: None };
            if placed.iter().all(|other| other.name != output.name)
                && !stay.contains(&name)
                && self.try_name(&name, hash, &bytes).await.map_err(|error| self.failed(&name, error))?
            {
                return Ok(output);
            }
            first.get_or_insert(name);
        }
        Err(DepositError::NoFreeName { file: self.path(&first.unwrap_or_default()).escaped() })
    }

    /// Returns `false` if the name is taken by an object of somebody else.
    async fn try_name(&self, name: &OsStr, hash: Hash, bytes: &Bytes) -> io::Result<bool> {
        let path = self.path(name);
        for look in 1..=LOOKS {
            let put = match self.find(&path, name, hash, bytes.len() as u64).await? {
                Found::Same => return Ok(true),
                Found::Foreign => return Ok(false),
                Found::Nothing => self.bucket.put_new(&path, bytes.clone()).await,
                Found::Ours(object) => self.bucket.replace(&object, bytes.clone()).await,
            };
            match put {
                Ok(Put::Done) => return Ok(true),
                Ok(Put::Taken) => {}
                // The object may be there or not: it is looked at before the put is repeated.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted && look < LOOKS => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false) // somebody else works on it
    }

    async fn find(&self, path: &RelPath, name: &OsStr, hash: Hash, size: u64) -> io::Result<Found> {
        if self.ours.of_others.contains(name) {
            return Ok(Found::Foreign);
        }
        let Some(object) = self.bucket.head(path).await? else { return Ok(Found::Nothing) };
        let known: Vec<Hash> = self.hashes_for(name).collect();
        let may_be = object.stamp.size == size || !known.is_empty() && object.stamp.size <= LONGEST_OURS;
        if !may_be {
            return Ok(Found::Foreign);
        }
        let read = self.bucket.hash(path, object.stamp).await?;
        Ok(match read {
            read if read == hash => Found::Same,
            read if known.contains(&read) => Found::Ours(object),
            _ => Found::Foreign,
        })
    }

    fn hashes_for(&self, name: &OsStr) -> impl Iterator<Item = Hash> {
        let placed = self.ours.published.iter().filter(move |(ours, _)| ours == name).map(|(_, hash)| *hash);
        placed.chain(self.ours.pending.iter().copied())
    }

    fn path(&self, name: &OsStr) -> RelPath {
        RelPath::new(self.beside.join(name).as_os_str().as_bytes())
    }

    fn failed(&self, name: &OsString, error: io::Error) -> DepositError {
        let file = self.path(name).escaped();
        match error.kind() {
            io::ErrorKind::PermissionDenied => DepositError::NoPermission { file, error },
            _ => DepositError::Io { file, error },
        }
    }
}
