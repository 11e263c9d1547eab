//! What ffmpeg and ffprobe may do with a file that anybody may have made: which formats they read, and how much
//! memory, processor time and disk they take. How many of them run at once is limited for the whole process.

use super::decode::DecodeError;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::io;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Formats that hold sound, by the names of their demuxers. None of them opens another file: no playlist, no
/// manifest, no sequence of pictures, no session description. ffmpeg passes over names that it does not know.
const FORMATS: &str = "aa,aac,ac3,act,aea,aiff,alaw,amr,amrnb,amrwb,ape,asf,asf_o,au,avi,avr,caf,codec2,dss,dsf,dts,dtshd,dv,\
                       eac3,f32be,f32le,f64be,f64le,flac,flv,g722,g723_1,g726,g726le,g729,gsm,gxf,h264,hevc,iff,ircam,\
                       ivf,live_flv,loas,lxf,m4v,matroska,webm,mlp,mov,mp4,m4a,3gp,3g2,mj2,mp3,mpc,mpc8,mpeg,mpegts,\
                       mpegvideo,mulaw,mxf,nistsphere,nut,ogg,oma,osq,paf,pvf,qcp,rm,s16be,s16le,s24be,s24le,s32be,\
                       s32le,sbc,sds,shn,sln,sox,spdif,tak,truehd,tta,ty,u8,voc,w64,wav,wsd,wtv,wv,xwma";

/// Options of both programs, before the input: the formats, no other way to a file than its path, and one thread,
/// since as many of these run as there is work.
pub(super) const OPTIONS: [&str; 6] =
    ["-protocol_whitelist", "file,pipe", "-format_whitelist", FORMATS, "-threads", "1"];

/// Address space of one: they take 0.3 GiB for a film of 4K, whatever its length.
const MEMORY: u64 = 2 << 30;

/// Processor time of a look at a file.
pub(super) const LOOK: Duration = Duration::from_secs(60);

/// Processor time to read all of a recording of so many seconds: a small computer decodes sound a hundred times
/// faster than it lasts. Without a length it is that of a day.
pub(super) fn decode_cpu_limit(seconds: f64) -> Duration {
    const LEAST: Duration = Duration::from_secs(600);
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let known = Duration::try_from_secs_f64(seconds).ok().filter(|length| !length.is_zero());
    LEAST.saturating_add(known.unwrap_or(DAY))
}

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FfmpegUse {
    /// A look at what it is: short.
    Look,
    /// All of its sound is read; this may wait for whoever takes the sound.
    Read,
}

/// Looks at once in this process, and files that are read at once. These are the process's own, not a service's or a
/// queue's: it is the machine that they protect.
static LOOKS: Semaphore = Semaphore::const_new(8);
static READS: Semaphore = Semaphore::const_new(64);

/// The right to have a program run; held as long as it does.
pub(super) async fn permit(what: FfmpegUse) -> Result<SemaphorePermit<'static>, DecodeError> {
    let of = match what {
        FfmpegUse::Look => &LOOKS,
        FfmpegUse::Read => &READS,
    };
    // Never closed.
    of.acquire().await.map_err(|closed| DecodeError::Io(io::Error::other(closed)))
}

/// Starts a program with limits on its memory and its processor time. It leaves no core file.
///
/// # Errors
/// It cannot be started, or not be limited.
pub(super) fn spawn(command: &mut Command, processor: Duration) -> io::Result<Child> {
    let child = command.spawn()?;
    let Some(pid) = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) else {
        return Ok(child);
    };
    let seconds = processor.as_secs().max(1);
    let limits = [
        (Resource::As, MEMORY, MEMORY),
        // At the first it is told, at the second it is ended.
        (Resource::Cpu, seconds, seconds + 5),
        (Resource::Core, 0, 0),
    ];
    for (resource, current, maximum) in limits {
        let set = prlimit(Some(pid), resource, Rlimit { current: Some(current), maximum: Some(maximum) });
        match set {
            Ok(_) => {}
            // It has ended already.
            Err(error) if error == rustix::io::Errno::SRCH => break,
            // A lower one holds already, set by whoever started this process.
            Err(error) if error == rustix::io::Errno::PERM => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(child)
}

/// Why a program ended that said nothing; `None` where that was not by these limits.
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
        assert_eq!(of("Max address space"), [MEMORY.to_string(), MEMORY.to_string()]);
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
        assert_eq!(decode_cpu_limit(3600.0), Duration::from_secs(4200));
        for unknown in [0.0, f64::NAN, -1.0, f64::INFINITY] {
            assert_eq!(decode_cpu_limit(unknown), Duration::from_secs(87_000));
        }
    }
}
