//! The requests to the queue and their answers. They are the same whether a daemon carries them out or the command
//! itself. Start reading at `request.rs`; the other files have what commands of a kind ask and are told.

mod adopt;
mod answer;
mod browse;
mod changes;
mod cost;
mod digest;
mod edit;
mod erase;
mod explain;
mod forget;
mod job_view;
mod render;
mod request;
mod search;
mod status;
mod verify;

pub use adopt::AdoptQuery;
pub use answer::{CommandRefusal, ControlAnswer, SharedConfiguration};
pub use browse::{
    BrowseCursor, BrowseFilter, BrowseQuery, BrowseSort, BrowsedJobs, DayCost, HourActivity, MOST_BROWSED,
    NightActivity, QueueActivity,
};
pub use changes::{Added, Deleted, Retried, RetryCost};
pub use cost::{BudgetUse, By, CostLine, CostPiece, CostQuery, CostSum};
pub use digest::{DigestJob, DigestProblem, DigestReport, FailureGroup};
pub use edit::{
    AcceptedEdit, CaptionLines, DraftHead, EditAction, EditAnswer, EditQuery, EditRules, EditedWord, OpenedText,
    SavedDraft, SuspectPassage,
};
pub use erase::{EraseQuery, Erased, ErasureItem, ErasureKind, ErasureOutcome};
pub use explain::{Explained, FactKind, JobFact, KnownName, PathRole};
pub use forget::{ForgetPiece, ForgetQuery, Forgettable};
pub use job_view::{ChangedOutput, JobPage, Origin, OutputDifference, Shown};
pub use render::{AcceptQuery, AcceptedAnswer, RenderPiece, RenderQuery};
pub use request::{AddUrlRequest, ControlRequest, JobSelector, MAX_LOOKUP_NAMES, Selection};
pub use search::{IndexStatus, MOST_HITS, SearchHit, SearchPage, SearchQuery};
pub use status::{
    AwaySourceStatus, CallbackCounts, DaemonStatus, LaneCounts, ManifestStatus, QueueStatus, RemovedSource, ScanStatus,
    ServiceStatus, Waiting, WindowStatus,
};
pub use verify::{OutputState, VerifiedJob, VerifiedOutput, VerifyPiece, VerifyQuery};
