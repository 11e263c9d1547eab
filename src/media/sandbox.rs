//! Limits programs that read what anybody may have made: memory and processor time, and for ffmpeg and ffprobe the formats
//! and the number of processes that run at once.

use super::decode::DecodeError;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::io;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The formats that can contain sound, by the names of their demuxers. None of them opens another file: no playlist,
/// manifest, sequence of pictures or session description. ffmpeg ignores names that it does not know.
const FORMATS: &str = "aa,aac,ac3,act,aea,aiff,alaw,amr,amrnb,amrwb,ape,asf,asf_o,au,avi,avr,caf,codec2,dss,dsf,dts,dtshd,dv,\
                       eac3,f32be,f32le,f64be,f64le,flac,flv,g722,g723_1,g726,g726le,g729,gsm,gxf,h264,hevc,iff,ircam,\
                       ivf,live_flv,loas,lxf,m4v,matroska,webm,mlp,mov,mp4,m4a,3gp,3g2,mj2,mp3,mpc,mpc8,mpeg,mpegts,\
                       mpegvideo,mulaw,mxf,nistsphere,nut,ogg,oma,osq,paf,pvf,qcp,rm,s16be,s16le,s24be,s24le,s32be,\
                       s32le,sbc,sds,shn,sln,sox,spdif,tak,truehd,tta,ty,u8,voc,w64,wav,wsd,wtv,wv,xwma";

/// Options of both programs, before the input: the formats, no protocol but files and pipes, and one thread, because
/// several of these processes already run at once.
pub(super) const OPTIONS: [&str; 6] =
    ["-protocol_whitelist", "file,pipe", "-format_whitelist", FORMATS, "-threads", "1"];

/// The most address space of one process, in bytes: they need 0.3 GiB for a 4K film, whatever its length.
const MAX_ADDRESS_SPACE: u64 = 2 << 30;

/// The processor time for probing a file.
pub(super) const LOOK: Duration = Duration::from_secs(60);

/// Returns the processor time for decoding a whole recording of `size` bytes that declares `seconds`, or 0 if it declares
/// none: ten minutes plus its length. A header may declare far too little, so that the length is at least that of speech at
/// 8 kbit/s, up to a day. A small computer decodes sound a hundred times faster than it lasts.
pub(super) fn decode_cpu_limit(seconds: f64, size: u64) -> Duration {
    const BASE: Duration = Duration::from_secs(600);
    const DAY: u64 = 24 * 3600;
    const BYTES_A_SECOND: u64 = 1_000;
    let known = Duration::try_from_secs_f64(seconds).ok().filter(|length| !length.is_zero());
    let possible = Duration::from_secs((size / BYTES_A_SECOND).min(DAY));
    BASE.saturating_add(known.unwrap_or(Duration::from_secs(DAY)).max(possible))
}

/// What a process does with a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FfmpegUse {
    /// Probes the file, which is short.
    Look,
    /// Reads all of its sound; this may wait for the consumer of the sound.
    Read,
}

/// The number of probes and of decoders that may run at once. The limits are for this whole process, not for a service
/// or a queue, because they protect the machine.
static LOOKS: Semaphore = Semaphore::const_new(8);
static READS: Semaphore = Semaphore::const_new(64);

/// Waits until a process may be started. The permit is held as long as the process runs.
pub(super) async fn permit(what: FfmpegUse) -> Result<SemaphorePermit<'static>, DecodeError> {
    let semaphore = match what {
        FfmpegUse::Look => &LOOKS,
        FfmpegUse::Read => &READS,
    };
    // The semaphore is never closed.
    semaphore.acquire().await.map_err(|closed| DecodeError::Io(io::Error::other(closed)))
}

/// Starts a program with limits on its memory and its processor time, and without core files.
///
/// # Errors
/// Returns an error if the program cannot be started or limited.
pub fn spawn(command: &mut Command, cpu_limit: Duration) -> io::Result<Child> {
    let child = command.spawn()?;
    let Some(pid) = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) else {
        return Ok(child);
    };
    let seconds = cpu_limit.as_secs().max(1);
    let limits = [
        (Resource::As, MAX_ADDRESS_SPACE, MAX_ADDRESS_SPACE),
        // At the first limit it is signalled, at the second it is killed.
        (Resource::Cpu, seconds, seconds + 5),
        (Resource::Core, 0, 0),
    ];
    for (resource, current, maximum) in limits {
        let set = prlimit(Some(pid), resource, Rlimit { current: Some(current), maximum: Some(maximum) });
        match set {
            Ok(_) => {}
            // The process has ended already.
            Err(error) if error == rustix::io::Errno::SRCH => break,
            // A lower limit is already set by the parent of this process.
            Err(error) if error == rustix::io::Errno::PERM => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(child)
}

/// Returns the reason if a limit of processor time ended a program; `None` otherwise.
pub(super) fn ended_by_limit(status: ExitStatus) -> Option<&'static str> {
    use std::os::unix::process::ExitStatusExt as _;
    const SIGXCPU: i32 = 24;
    (status.signal() == Some(SIGXCPU)).then_some("reading it takes more processor time than its length allows")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    fn limits(child: &Child) -> String {
        std::fs::read_to_string(format!("/proc/{}/limits", child.id().unwrap())).unwrap()
    }

    #[tokio::test]
    async fn a_program_has_limits_on_memory_and_processor_time() {
        let mut child = spawn(Command::new("sleep").arg("60").kill_on_drop(true), Duration::from_secs(7)).unwrap();
        let limits = limits(&child);
        let of = |name: &str| {
            let line = limits.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace().take(2).map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(of("Max address space"), [MAX_ADDRESS_SPACE.to_string(), MAX_ADDRESS_SPACE.to_string()]);
        assert_eq!(of("Max cpu time"), ["7", "12"]);
        assert_eq!(of("Max core file size"), ["0", "0"]);
        child.kill().await.unwrap();
    }

    #[tokio::test]
    async fn a_program_that_computes_for_too_long_is_ended_and_that_is_said() {
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]).stdout(Stdio::null()).kill_on_drop(true);
        let status = spawn(&mut command, Duration::from_secs(1)).unwrap().wait().await.unwrap();
        assert!(ended_by_limit(status).is_some(), "{status:?}");
    }

    #[test]
    fn long_recordings_may_take_long() {
        assert_eq!(decode_cpu_limit(3600.0, 100), Duration::from_secs(4200));
        assert_eq!(decode_cpu_limit(3.0, 3_600_000), Duration::from_secs(4200), "a header may declare too little");
        assert_eq!(decode_cpu_limit(3.0, u64::MAX), Duration::from_secs(87_000));
        for unknown in [0.0, f64::NAN, -1.0, f64::INFINITY] {
            assert_eq!(decode_cpu_limit(unknown, 0), Duration::from_secs(87_000));
        }
    }
}
