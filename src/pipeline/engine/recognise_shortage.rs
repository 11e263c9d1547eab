//! Recognises that a stage stopped because this machine lacks file descriptors, memory or processes. Such an error may
//! have any words by then: that a folder is away, that a sidecar cannot be read, that an output cannot be written.

use super::executor::StageRun;
use crate::domain::fault::{Fault, FaultKind};
use crate::domain::names::Timestamp;
use crate::pipeline::stages::faults::shortage_fault;
use crate::pipeline::stages::outcome::{StageOutcome, StageStop};
use crate::shortage::Shortage;

/// Returns the result of a stage. If a shortage caused it, that is a fault that uses no attempt, blames nobody, and is
/// tried again.
pub(super) fn recognise_shortage(
    run: Option<Result<StageRun, StageStop>>,
    now: Timestamp,
) -> Option<Result<StageRun, StageStop>> {
    let shortage = match &run {
        // The stage panicked. A thread that cannot be started is a panic, too.
        None => Shortage::now(),
        Some(Err(StageStop::Fault(fault))) => shortage_in(fault),
        Some(Ok(StageRun::Outcome(outcome))) => match &**outcome {
            StageOutcome::Rest(_, fault) | StageOutcome::Sleep { reason: Some(fault), .. } => shortage_in(fault),
            _ => None,
        },
        Some(Ok(StageRun::Lost(_) | StageRun::Submission(..)) | Err(StageStop::Store(_))) => None,
    };
    match shortage {
        Some(shortage) => Some(Err(StageStop::Fault(shortage_fault(&shortage, now)))),
        None => run,
    }
}

/// Returns the shortage that a fault comes from. While there is one, no other fault of this machine is believed: the
/// error may have been lost on its way.
fn shortage_in(fault: &Fault) -> Option<Shortage> {
    match fault.kind {
        FaultKind::Unreadable
        | FaultKind::Unwritable
        | FaultKind::FolderAway
        | FaultKind::Sidecar
        | FaultKind::Template
        | FaultKind::Altered
        | FaultKind::NoRoom
        | FaultKind::NotInIt
        | FaultKind::NotAllowed
        | FaultKind::Bug => Shortage::in_words(&fault.words).or_else(Shortage::now),
        // These may quote a service.
        FaultKind::Asks => Shortage::now(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(7);
    const QUOTED: &str = "cannot be read: Too many open files (os error 24)";

    fn kind_after(kind: FaultKind, words: &str) -> FaultKind {
        let fault = || Fault::new(kind.clone(), words, NOW);
        let stopped = recognise_shortage(Some(Err(StageStop::Fault(fault()))), NOW);
        let rests = StageOutcome::Rest(None, fault());
        let rested = recognise_shortage(Some(Ok(rests.into())), NOW);
        let kind = |run| match run {
            Some(Err(StageStop::Fault(fault))) => fault.kind,
            Some(Ok(StageRun::Outcome(outcome))) => match *outcome {
                StageOutcome::Rest(_, fault) => fault.kind,
                other => panic!("{other:?}"),
            },
            _ => panic!("the stage had another result"),
        };
        let (stopped, rested) = (kind(stopped), kind(rested));
        assert_eq!(stopped, rested);
        stopped
    }

    #[test]
    fn a_shortage_is_recognised_behind_every_fault_of_this_machine_and_behind_none_of_a_service() {
        for local in [
            FaultKind::Unreadable,
            FaultKind::Unwritable,
            FaultKind::FolderAway,
            FaultKind::Sidecar,
            FaultKind::Template,
            FaultKind::NotInIt,
        ] {
            assert_eq!(kind_after(local.clone(), QUOTED), FaultKind::Shortage);
            assert_eq!(kind_after(local.clone(), "permission denied"), local);
        }
        for of_service in
            [FaultKind::Broken, FaultKind::Refused { status: 400 }, FaultKind::Unreachable, FaultKind::Asks]
        {
            assert_eq!(kind_after(of_service.clone(), QUOTED), of_service);
        }
    }
}
