//! Recognises errors by which the system says that this process or machine lacks file descriptors, memory or processes.
//! They say nothing about the file, folder or service at which they occur: the code that meets one waits and tries again.

use crate::clock::{Clock as _, SystemClock, Uptime};
use crate::domain::time_span::time_span;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The wait before something is tried again that failed for a shortage.
pub const SHORTAGE_WAIT: Duration = Duration::from_secs(1);

/// How long a scan or the check of a folder waits for the end of a shortage before it gives up for now.
pub const SHORTAGE_PATIENCE: Duration = Duration::from_secs(5 * 60);

/// With fewer file descriptors scribed may run short of them in ordinary work.
pub const MIN_DESCRIPTORS: u64 = 256;

/// The time between two reports in the log.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

/// The wait between two attempts to open a file, and the number of attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(50);
const MAX_RETRIES: u32 = 60;

/// What is lacking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    /// This process has as many files open as it may.
    Descriptors,
    /// All processes together have as many files open as the system allows.
    SystemDescriptors,
    Memory,
    /// No further process or thread may be started.
    Processes,
}

impl Shortage {
    /// Returns what is lacking according to an error; `None` if the error has another cause.
    pub fn of(error: &io::Error) -> Option<Self> {
        match (error.raw_os_error(), error.get_ref()) {
            (Some(number), _) => Self::of_errno(Errno::from_raw_os_error(number)),
            (None, Some(inner)) => Self::in_chain(inner).or_else(|| Self::in_words(&inner.to_string())),
            (None, None) => None,
        }
    }

    /// Returns what is lacking according to an error of a library, or to one of its causes.
    pub fn in_chain(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(shortage) = error.downcast_ref::<io::Error>().and_then(Self::of) {
                return Some(shortage);
            }
            cause = error.source();
        }
        None
    }

    /// Returns what is lacking according to a message that quotes an error of this system. Not for the words of a
    /// service: they may quote an error of another machine.
    pub fn in_words(words: &str) -> Option<Self> {
        let kinds = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN];
        let quoted = kinds.into_iter().find(|errno| words.contains(&format!("(os error {})", errno.raw_os_error())))?;
        // A process or thread that cannot be started has this error; no file has it.
        if quoted == Errno::AGAIN { Some(Self::Processes) } else { Self::of_errno(quoted) }
    }

    /// Returns what is lacking at this moment, as far as opening a file shows it.
    pub fn now() -> Option<Self> {
        std::fs::File::open("/dev/null").err().as_ref().and_then(Self::of)
    }

    fn of_errno(errno: Errno) -> Option<Self> {
        match errno {
            Errno::MFILE => Some(Self::Descriptors),
            Errno::NFILE => Some(Self::SystemDescriptors),
            Errno::NOMEM => Some(Self::Memory),
            _ => None,
        }
    }
}

impl Display for Shortage {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Descriptors => {
                let limit = descriptor_limit().map_or("unknown".to_owned(), |limit| limit.to_string());
                write!(
                    to,
                    "scribed has no file descriptors left: the limit of its process is {limit}; raise it with \
                     `ulimit -n`, or with LimitNOFILE= in the systemd unit"
                )
            }
            Self::SystemDescriptors => to.write_str(
                "this machine has no file descriptors left: all its programs together have as many files open as \
                 `fs.file-max` allows; raise it with `sysctl`, or stop other programs",
            ),
            Self::Memory => to.write_str(
                "this machine has no memory left for scribed; stop other programs, or raise the limit of the process \
                 (`ulimit -v`, or MemoryMax= in the systemd unit)",
            ),
            Self::Processes => to.write_str(
                "scribed cannot start another process or thread; raise the limit with `ulimit -u`, or with TasksMax= \
                 in the systemd unit",
            ),
        }
    }
}

/// Returns how many files this process may have open; `None` without a limit.
pub fn descriptor_limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Repeats `access` for a few seconds while it fails for a shortage: most end soon. Blocks.
///
/// # Errors
/// The last error of `access`.
pub fn retry<T>(mut access: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 0..MAX_RETRIES {
        match access() {
            Err(error) if Shortage::of(&error).is_some() => std::thread::sleep(RETRY_INTERVAL),
            done => return done,
        }
    }
    access()
}

/// Repeats `access` for [`SHORTAGE_PATIENCE`] while it fails for a shortage and `continues`, and reports the shortage.
/// Blocks.
///
/// # Errors
/// The last error of `access`.
pub fn wait_out<T, E>(
    mut access: impl FnMut() -> Result<T, E>,
    of: impl Fn(&E) -> Option<Shortage>,
    continues: impl Fn() -> bool,
) -> Result<T, E> {
    let began = SystemClock.uptime();
    loop {
        let result = access();
        let shortage = result.as_ref().err().and_then(&of);
        let Some(shortage) = shortage.filter(|_| continues()) else { return result };
        if SystemClock.uptime().since(began) >= SHORTAGE_PATIENCE {
            return result;
        }
        report(&shortage.to_string(), SHORTAGE_WAIT);
        std::thread::sleep(SHORTAGE_WAIT);
    }
}

/// Logs what is lacking, and when scribed tries again: once a minute for the whole process, however often it occurs.
pub fn report(words: &str, wait: Duration) {
    static LAST: Mutex<Option<Uptime>> = Mutex::new(None);
    let now = SystemClock.uptime();
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if last.is_none_or(|last| now.since(last) >= REPORT_INTERVAL) {
        *last = Some(now);
        let wait = time_span(Duration::from_secs(wait.as_secs().max(1)));
        tracing::warn!("{words}; scribed tries again in {wait}, and no job fails because of this");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_is_recognised_in_an_error_in_its_causes_and_in_a_message_that_quotes_it() {
        let raw = |errno: Errno| io::Error::from_raw_os_error(errno.raw_os_error());
        let kinds = [
            (Errno::MFILE, Shortage::Descriptors),
            (Errno::NFILE, Shortage::SystemDescriptors),
            (Errno::NOMEM, Shortage::Memory),
        ];
        for (errno, shortage) in kinds {
            assert_eq!(Shortage::of(&raw(errno)), Some(shortage));
            let wrapped = io::Error::other(io::Error::other(raw(errno)));
            assert_eq!(Shortage::of(&wrapped), Some(shortage));
            let explained = io::Error::other(format!("cannot open /x: {}", raw(errno)));
            assert_eq!(Shortage::of(&explained), Some(shortage));
        }
        for errno in [Errno::NOENT, Errno::ACCESS, Errno::NOSPC, Errno::IO, Errno::STALE, Errno::AGAIN] {
            assert_eq!(Shortage::of(&raw(errno)), None, "{errno}");
        }
        let spawn = format!("cannot run ffmpeg: {}", raw(Errno::AGAIN));
        assert_eq!(Shortage::in_words(&spawn), Some(Shortage::Processes));
        assert_eq!(Shortage::in_words("the service answered 500: Too many open files"), None);
        assert_eq!(Shortage::now(), None);
    }

    #[test]
    fn the_message_names_the_limit_and_how_to_raise_it() {
        let told = Shortage::Descriptors.to_string();
        let limit = descriptor_limit().map_or(String::new(), |limit| limit.to_string());
        for part in [limit.as_str(), "`ulimit -n`", "LimitNOFILE="] {
            assert!(told.contains(part), "{told}");
        }
    }

    #[test]
    fn a_short_shortage_is_waited_for_and_another_error_is_not() {
        let mut count = 0;
        let opened = retry(|| {
            count += 1;
            if count < 3 { Err(io::Error::from_raw_os_error(Errno::MFILE.raw_os_error())) } else { Ok(count) }
        });
        assert_eq!(opened.ok(), Some(3));
        let mut count = 0;
        let denied = retry(|| {
            count += 1;
            Err::<(), _>(io::Error::from(io::ErrorKind::PermissionDenied))
        });
        assert!(denied.is_err());
        assert_eq!(count, 1);
    }
}
