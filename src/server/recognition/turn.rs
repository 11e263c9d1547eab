//! A signal that pauses and resumes a transcription in progress, which keeps what it has.

use tokio::sync::watch;

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

    /// Whether the work is paused now.
    pub fn is_paused(&self) -> bool {
        !*self.0.borrow()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_paused_waits_until_it_goes_on() {
        let turn = TurnSignal::default();
        turn.wait().await;
        turn.pause();
        assert!(turn.is_paused());
        let own = turn.clone();
        let waiting = tokio::spawn(async move { own.wait().await });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        turn.resume();
        waiting.await.unwrap();
        assert!(!turn.is_paused());
    }
}
