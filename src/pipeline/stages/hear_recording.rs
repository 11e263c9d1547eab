//! Decodes the recording of a job after it was transcribed. Whatever goes wrong here fails no job: what needs the sound is
//! done without it.

use crate::blocking::blocking;
use crate::clock::Clock;
use crate::domain::job::Job;
use crate::domain::sent_audio::SentAudio;
use crate::domain::token::PurchaseKey;
use crate::media::decode::DecodeError;
use crate::permission_errors::describe_error_at;
use crate::pipeline::media_file::MediaFile;
use crate::pipeline::stages::upload::stream::open_unchanged;
use crate::source::mount::source_mount::Mount;
use crate::store::params::ParamFiles;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;
use std::time::Duration;
use tokio::sync::Semaphore;

/// The files that are decoded at once: half of the processors, since recordings that wait for their upload are worth
/// more.
static TURNS: LazyLock<Semaphore> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    Semaphore::new((cores / 2).max(1))
});

/// Returns how long a job waits for its turn and its decoder together: ten minutes and a twentieth of the recording.
/// A slow computer decodes sound fifty times faster than it lasts.
fn time_limit(length: f64) -> Duration {
    let share = Duration::try_from_secs_f64(length / 20.0).unwrap_or_default();
    Duration::from_secs(600).saturating_add(share)
}

/// Opens the recording of a job and works on its sound, of so many `seconds`, when it is its turn.
///
/// # Errors
/// Says why that is not possible.
pub async fn hear<T, F>(
    clock: &dyn Clock,
    mount: &Mount,
    job: &Job,
    seconds: f64,
    work: impl FnOnce(File) -> F,
) -> Result<T, String>
where
    F: Future<Output = Result<T, DecodeError>>,
{
    let MediaFile::File { path, disk } = MediaFile::of(mount, job) else {
        return Err("the recording is not on this machine".to_owned());
    };
    let (seen, limit) = (job.seen, time_limit(seconds));
    let hearing = async {
        let _turn = TURNS.acquire().await.map_err(|closed| closed.to_string())?;
        mount.check_now().await.map_err(|away| away.to_string())?;
        let full = path.full();
        let opened = blocking(move || open_unchanged(&path, disk, seen).and_then(check_is_media)).await;
        let file =
            opened.map_err(|error| format!("the recording cannot be read: {}", describe_error_at(&error, &full)))?;
        work(file).await.map_err(|error| error.to_string())
    };
    tokio::select! {
        biased;
        heard = hearing => heard,
        () = clock.sleep(limit) => Err("it took too long".to_owned()),
    }
}

/// Returns the channels that were sent, from 1; empty if all were. `own` is what the job itself sent: nothing if it uses
/// what another one bought.
pub fn sent_channels(own: Option<&SentAudio>, params: &ParamFiles, purchase_key: &PurchaseKey) -> Vec<u32> {
    match own {
        Some(SentAudio::Audio(track)) => track.only.clone(),
        Some(SentAudio::Original { .. }) => Vec::new(),
        None => {
            let selection = params.order(&purchase_key.params).ok().and_then(|(_, selection)| selection);
            let channels = selection.as_ref().and_then(|selection| selection.channels());
            channels.map(|channels| channels.numbers().to_vec()).unwrap_or_default()
        }
    }
}

/// Refuses a file of text: no program need be started to see that it is no recording.
fn check_is_media(file: File) -> io::Result<File> {
    let mut head = [0; 1024];
    let read = file.read_at(&mut head, 0)?;
    let head = &head[..read];
    // A character may be cut at the end.
    let is_text = std::str::from_utf8(head).map_or_else(|error| error.error_len().is_none(), |_| true);
    match is_text && !head.contains(&0) {
        true => Err(io::Error::other("it is no recording")),
        false => Ok(file),
    }
}
