//! Whether a transcription that has begun goes on, or has given up its place for a while and keeps what it has.

use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Shared by who decides and by who works. Goes on at first.
#[derive(Debug, Clone)]
pub struct TurnSignal(watch::Sender<bool>);

impl Default for TurnSignal {
    fn default() -> Self {
        Self(watch::Sender::new(true))
    }
}

impl TurnSignal {
    /// The work stops at its next step.
    pub fn pause(&self) {
        self.0.send_replace(false);
    }

    /// The work goes on.
    pub fn resume(&self) {
        self.0.send_replace(true);
    }

    /// Waits until the work may go on.
    pub async fn wait(&self) {
        // The sender lives as long as this does.
        let _ = self.0.subscribe().wait_for(|goes_on| *goes_on).await;
    }

    /// As [`TurnSignal::wait`], on a thread that may block; returns also when nobody wants the work any more.
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
