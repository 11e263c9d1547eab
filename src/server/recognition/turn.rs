//! A signal that pauses and resumes a transcription in progress, which keeps what it has.

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Shared by the dispatcher and the transcription. Not paused at first.
#[derive(Debug, Clone)]
pub struct TurnSignal(watch::Sender<bool>);

impl Default for TurnSignal {
    fn default() -> Self {
        Self(watch::Sender::new(true))
    }
}

impl TurnSignal {
    /// Pauses the work before its next step.
    pub fn pause(&self) {
        self.0.send_replace(false);
    }

    /// Lets the work continue.
    pub fn resume(&self) {
        self.0.send_replace(true);
    }

    /// Waits while the work is paused.
    pub async fn wait(&self) {
        // `self` keeps the sender alive.
        let _ = self.0.subscribe().wait_for(|goes_on| *goes_on).await;
    }

    /// As [`TurnSignal::wait`], on a thread that may block; also returns when the work is dropped.
    pub fn wait_blocking(&self, dropped: &CancellationToken) {
        if *self.0.borrow() {
            return;
        }
        Handle::current().block_on(async {
            tokio::select! {
                () = self.wait() => {}
                () = dropped.cancelled() => {}
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_paused_waits_until_it_goes_on_or_nobody_wants_it() {
        let turn = TurnSignal::default();
        turn.wait().await;
        turn.pause();
        let waits = |turn: &TurnSignal, dropped: &CancellationToken| {
            let (turn, dropped) = (turn.clone(), dropped.clone());
            crate::blocking::spawn(move || turn.wait_blocking(&dropped))
        };
        let (kept, dropped) = (CancellationToken::new(), CancellationToken::new());
        let (one, other) = (waits(&turn, &kept), waits(&turn, &dropped));
        dropped.cancel();
        other.await.unwrap();
        assert!(!one.is_finished());
        turn.resume();
        one.await.unwrap();
    }
}
