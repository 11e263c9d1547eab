//! Runs a program: its arguments one by one, without a shell, in a process group of its own, with little of scribed's
//! environment. It gets the JSON of the message as its standard input.

use super::sender::SendError;
use crate::clock::Clock;
use crate::config::template::notice::ProgramArguments;
use crate::domain::escape;
use crate::notifications::message::{Message, shortened};
use rustix::process::{Pid, Signal, kill_process_group};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

/// How long a program may run.
const TIME_OUT: Duration = Duration::from_secs(30);

/// How long the standard error of an ended program is read.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// What a program gets of the environment: enough to find programs and the desktop, and no key.
const ENVIRONMENT: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// The longest argument: the system has a limit for all together.
const ARGUMENT: usize = 8_000;

/// The most bytes that are read of its standard error.
const ERRORS: usize = 4 << 10;

/// Runs the program once.
///
/// # Errors
/// It cannot be started, does not end in time, or ends with a failure.
pub async fn run(arguments: &ProgramArguments, message: &Message, clock: &dyn Clock) -> Result<(), SendError> {
    let rendered = arguments.render(&message.vars());
    let rendered = rendered.map_err(|(at, why)| SendError::new(format!("argument {at} does not render: {why}")))?;
    let program = arguments.program();
    let mut command = Command::new(program);
    command.args(rendered.iter().map(|argument| shortened(argument, ARGUMENT))).env_clear();
    command.envs(ENVIRONMENT.into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true);
    let mut child = command
        .spawn()
        .map_err(|error| SendError::new(format!("the program {program:?} cannot be started: {error}")))?;
    let group = GroupEnd::of(&child);
    let ended = tokio::select! {
        ended = talk(&mut child, group, message.json().to_string(), clock) => ended,
        () = clock.sleep(TIME_OUT) => {
            let words = format!("the program {program:?} did not end within {} s, and was killed", TIME_OUT.as_secs());
            return Err(SendError::new(words));
        }
    };
    let (status, errors) = ended.map_err(|error| SendError::new(format!("the program {program:?} failed: {error}")))?;
    match status.success() {
        true => Ok(()),
        false => Err(SendError::new(describe(program, status, &errors))),
    }
}

/// Writes the input, waits for the end, and returns the beginning of the standard error. What the program leaves behind
/// in its group is killed; one that left the group may keep the standard error open, which is not waited for.
async fn talk(
    child: &mut Child,
    group: GroupEnd,
    input: String,
    clock: &dyn Clock,
) -> std::io::Result<(ExitStatus, Vec<u8>)> {
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let (mut errors, ended) = (Vec::new(), CancellationToken::new());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A program need not read its input.
            tokio::select! {
                written = stdin.write_all(input.as_bytes()) => drop(written),
                () = ended.cancelled() => {}
            }
        }
    };
    let wait = async {
        let status = child.wait().await;
        drop(group);
        ended.cancel();
        status
    };
    let read = async {
        let open_end = async {
            ended.cancelled().await;
            clock.sleep(LAST_WORDS).await;
        };
        tokio::select! {
            () = read_some(stderr, &mut errors) => {}
            () = open_end => {}
        }
    };
    let (status, (), ()) = tokio::join!(wait, write, read);
    Ok((status?, errors))
}

async fn read_some(from: Option<impl AsyncRead + Unpin>, read: &mut Vec<u8>) {
    let Some(mut from) = from else { return };
    let mut piece = [0; 1024];
    // The rest is read, too: a full pipe would block the program.
    while let Ok(bytes @ 1..) = from.read(&mut piece).await {
        read.extend_from_slice(&piece[..bytes.min(ERRORS.saturating_sub(read.len()))]);
    }
}

fn describe(program: &str, status: ExitStatus, errors: &[u8]) -> String {
    let text = String::from_utf8_lossy(errors);
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let said = shortened(&escape::line(line.trim()), 200);
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    format!("the program {program:?} ended with {status}{said}")
}

/// Kills what is left of a process group when it is dropped.
struct GroupEnd(Option<Pid>);

impl GroupEnd {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }
}

impl Drop for GroupEnd {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It may have ended already.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::clock::{SystemClock, Uptime};
    use crate::domain::names::Timestamp;
    use crate::domain::notification::NotificationEvent;

    /// A clock on which every wait is over at once.
    struct Hasty;

    #[async_trait::async_trait]
    impl Clock for Hasty {
        fn now(&self) -> Timestamp {
            Timestamp(0)
        }

        fn uptime(&self) -> Uptime {
            Uptime(Duration::ZERO)
        }

        async fn sleep(&self, _span: Duration) {}
    }

    async fn run_script(script: &str, clock: &dyn Clock) -> Result<(), SendError> {
        let arguments = ProgramArguments::build(&["sh", "-c", script]).unwrap();
        let words = vec!["it failed".to_owned()];
        let message = Message::worded(NotificationEvent::Outage, ("msg_1", Timestamp(0)), Vec::new(), words, 0);
        run(&arguments, &message, clock).await
    }

    #[tokio::test]
    async fn a_program_that_does_not_end_is_killed() {
        let error = run_script("sleep 600", &Hasty).await.unwrap_err();
        assert!(error.words.contains("did not end within 30 s, and was killed"), "{}", error.words);
    }

    #[tokio::test]
    async fn what_a_program_leaves_behind_and_an_input_that_it_does_not_read_hold_nothing_up() {
        run_script("sleep 600 & exit 0", &SystemClock).await.unwrap();
        let loud = "head -c 1000000 /dev/zero >&2; exec 0<&-; echo; exit 7";
        let error = run_script(loud, &SystemClock).await.unwrap_err();
        assert!(error.words.contains("exit status: 7") && error.words.len() < 2_000, "{}", error.words);
    }
}
