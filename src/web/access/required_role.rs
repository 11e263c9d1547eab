//! Which role a request needs. A new request has to be given one here.

use crate::control::transport::protocol::ControlRequest;
use crate::domain::role::Role;

/// Returns the least role for a request.
pub fn required_role(request: &ControlRequest) -> Role {
    use ControlRequest as R;
    match request {
        R::Status
        | R::Configuration
        | R::Health
        | R::LongWaits { .. }
        | R::Waiting { .. }
        | R::Jobs(_)
        | R::Browse(_)
        | R::Matching(_)
        | R::Activity { .. }
        | R::Show { .. }
        | R::Explain { .. }
        | R::LookUp { .. }
        | R::Bought { .. }
        | R::Cost(_)
        | R::Search(_)
        | R::SearchIndex { rebuild: false }
        | R::Digest { .. }
        | R::Paused => Role::Viewer,
        R::Verify(query) if !query.repair => Role::Viewer,
        R::Edit(query) if query.action.only_reads() => Role::Viewer,
        R::Render(query) if query.dry_run => Role::Viewer,
        // They spend nothing and remove nothing that scribed cannot write again.
        R::Bump { .. } | R::Acknowledge { .. } | R::Accept(_) | R::Edit(_) | R::Verify(_) | R::Render(_) => {
            Role::Editor
        }
        R::SearchIndex { .. } => Role::Editor,
        R::Add { .. }
        | R::CopyRows { .. }
        | R::AddUrl(_)
        | R::Retry { .. }
        | R::Cancel { .. }
        | R::Delete { .. }
        | R::Erase(_)
        | R::Forget(_)
        | R::Pause { .. }
        | R::Resume { .. }
        | R::Trust { .. }
        | R::Adopt(_)
        | R::Reload => Role::Operator,
    }
}
