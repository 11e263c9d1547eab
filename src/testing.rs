//! What tests, benches and fuzz targets use of the rooms, in modules named like them. The rooms themselves are private, so
//! that the compiler reports what nothing uses. Add a name here when a test needs one.

pub mod backpressure {
    pub mod poll_schedule {
        pub use crate::backpressure::poll_schedule::{Poll, PollSchedule};
    }
}
pub mod captions {
    pub use crate::captions::{
        CaptionFile, CaptionFormat, CaptionRule, CaptionRules, Cue, Layout, Profile, check, fix, lay_out, srt,
    };
}
pub mod cli {
    pub mod args {
        pub use crate::cli::args::Arguments;
    }
    pub mod commands {
        pub mod manual {
            pub use crate::cli::commands::manual::PAGES;
        }
    }
}
pub mod client {
    pub mod answer {
        pub use crate::client::answer::whole;
    }
    pub mod contract {
        pub use crate::client::contract::{
            AcceptedUpload, Client, CreatePermit, CreateRequest, Creation, FullListPage, Identity, ListFault, ListItem,
            ListKind, ListPage, ListedFile, PageFault, RecordEvidence, RecordMark, RecordState, RequestAudio,
            UnreadableItem, UploadFile,
        };
    }
    pub mod http {
        pub use crate::client::http::{ClientOptions, HttpClient, ServiceKey, Timeouts};
    }
}
pub mod clock {
    pub use crate::clock::{Clock, Steady, SystemClock, Uptime};
}
pub mod config {
    pub mod load {
        pub mod keys {
            pub use crate::config::load::keys::{ConfigKey, FILE, Holds, described_path};
        }
        pub mod read {
            pub use crate::config::load::read::{load, load_with, load_without_secrets, parse};
        }
        pub mod schema {
            pub use crate::config::load::schema::{MANUAL, Manual};
        }
        pub mod shape {
            pub use crate::config::load::shape::{Shape, shape};
        }
    }
    pub mod model {
        pub use crate::config::model::{Config, ServiceTerms, Source};
    }
}
pub mod crash_points {
    pub use crate::crash_points::Point;
}
pub mod daemon {
    pub use crate::daemon::Daemon;
}
pub mod domain {
    pub mod budget {
        pub use crate::domain::budget::{Account, BudgetExceeded, BudgetLimit, Period, Span};
    }
    pub mod charge {
        pub use crate::domain::charge::{Charge, LimitAtReservation, Sighted, State};
    }
    pub mod clock_ahead {
        pub use crate::domain::clock_ahead::LongestWaits;
    }
    pub mod cron_line {
        pub use crate::domain::cron_line::CronLine;
    }
    pub mod fault {
        pub use crate::domain::fault::{Fault, FaultKind};
    }
    pub mod format {
        pub use crate::domain::format::Format;
    }
    pub mod callback_auth {
        pub use crate::domain::callback_auth::AddressSeal;
    }
    pub mod hint {
        pub use crate::domain::hint::Hint;
    }
    pub mod job {
        pub use crate::domain::job::{Job, JobKey, JobTag, Output, Stamp};
    }
    pub mod manifest_row {
        pub use crate::domain::manifest_row::{ManifestRow, OutputPlace, RowMedia, RowSight};
    }
    pub mod missing_enrichment {
        pub use crate::domain::missing_enrichment::{Enrichment, MissingPart};
    }
    pub mod names {
        pub use crate::domain::names::{Hash, JobId, ServiceName, SourceName, Timestamp, TranscriptionId, UploadId};
    }
    pub mod path {
        pub use crate::domain::path::RelPath;
    }
    pub mod pause {
        pub use crate::domain::pause::{Pause, PauseScope, Pauses};
    }
    pub mod reason {
        pub use crate::domain::reason::job_wait_reason;
    }
    pub mod remote_url {
        pub use crate::domain::remote_url::{RemoteUrl, surrogate_hash};
    }
    pub mod request_record {
        pub use crate::domain::request_record::RequestRecord;
    }
    pub mod review {
        pub use crate::domain::review::{Review, ReviewCheck, ReviewWarning};
    }
    pub mod routing {
        pub use crate::domain::routing::ServiceRouting;
    }
    pub mod scheduling {
        pub use crate::domain::scheduling::{
            JobOrder, Lane, QueuePosition, SchedulingPolicies, SchedulingPolicy, SortKey,
        };
    }
    pub mod split {
        pub use crate::domain::split::{PartRange, Split};
    }
    pub mod stage {
        pub use crate::domain::stage::{
            AudioAmount, AudioAt, Intent, JobEvent, LeaderState, Skip, Stage, StageKind, UploadedAudio,
        };
    }
    pub mod token {
        pub use crate::domain::token::{PurchaseKey, RESERVED_KEY, Token};
    }
    pub mod transcript {
        pub use crate::domain::transcript::{Transcript, Utterance, Word};
    }
    pub mod window {
        pub use crate::domain::window::{Window, Windows};
    }
    pub mod zone {
        pub use crate::domain::zone::Zone;
    }
}
pub mod harvest {
    pub mod folder {
        pub use crate::harvest::folder::HarvestFolder;
    }
    pub mod gather {
        pub use crate::harvest::gather::{HarvestedRecord, Harvester, RecordOutcome};
    }
}
pub mod media {
    pub mod decode {
        pub use crate::media::decode::{DecodeError, Decoder, INACTIVITY, SAMPLE_RATE, probe, probe_open};
    }
    pub mod speech_segments {
        pub use crate::media::speech_segments::{CutRule, Segmenter};
    }
    pub mod extract {
        pub use crate::media::extract::{ExtractionNeed, measure, probe_tracks};
    }
    pub mod length {
        pub use crate::media::length::length;
    }
    pub mod mixed_sound {
        pub use crate::media::mixed_sound::{MixedSound, SoundPart};
    }
    pub mod speech {
        pub use crate::media::speech::{FoundSpeech, SpeechSearch, find_speech};
    }
    pub mod tags {
        pub use crate::media::tags::describe;
    }
}
pub mod output {
    pub mod formats {
        pub use crate::output::formats::{Production, Provenance};
    }
    pub mod render_result {
        pub use crate::output::render_result::{ResultToRender, render_result};
    }
    pub mod results {
        pub use crate::output::results::Results;
    }
    pub mod spool {
        pub use crate::output::spool::Spool;
    }
}
pub mod pipeline {
    pub mod budget {
        pub use crate::pipeline::budget::{BudgetGate, Deferral, Measure};
    }
    pub mod engine {
        pub use crate::pipeline::engine::{Engine, EngineEnd, EngineParts, Until};
    }
    pub mod recovery {
        pub mod list_scan {
            pub use crate::pipeline::recovery::list_scan::{
                LatestCreation, ListScan, ScanContext, ScanFault, ScanScope, run,
            };
        }
    }
    pub mod request {
        pub mod callback_address {
            pub use crate::pipeline::request::callback_address::CallbackAddresses;
        }
    }
    pub mod stages {
        pub mod output_folders {
            pub use crate::pipeline::stages::output_folders::FRESH;
        }
        pub mod poison_guard {
            pub use crate::pipeline::stages::poison_guard::InProgress;
        }
        pub mod upload {
            pub mod stream {
                pub use crate::pipeline::stages::upload::stream::UploadStream;
            }
        }
    }
}
pub mod review {
    pub use crate::review::{ReviewInput, Thresholds, TimeSpan, UnreadSound, review};
}
pub mod rooted_path {
    pub use crate::rooted_path::RootedPath;
}
pub mod search {
    pub use crate::search::{IndexMark, JobText, PageOrder, ParsedQuery, Passage, PassageFilter, SearchIndex};
}
pub mod server {
    pub mod fetch {
        pub mod download {
            pub use crate::server::fetch::download::Fetcher;
        }
        pub mod ssrf_guard {
            pub use crate::server::fetch::ssrf_guard::AddressPolicy;
        }
        pub mod worker {
            pub use crate::server::fetch::worker::FetchWorker;
        }
    }
    pub mod http {
        pub mod auth {
            pub use crate::server::http::auth::{ApiKey, own_key};
        }
        pub mod connections {
            pub use crate::server::http::connections::Most;
        }
        pub mod listener {
            pub use crate::server::http::listener::ListenerLimits;
        }
        pub mod multipart {
            pub use crate::server::http::multipart::{Multipart, MultipartError, PartHeader, boundary};
        }
        pub mod records {
            pub use crate::server::http::records::query_pairs;
        }
        pub mod request_body {
            pub use crate::server::http::request_body::BodyLimits;
        }
        pub mod validate_create {
            pub use crate::server::http::validate_create::{parse_upload, read_create};
        }
    }
    pub mod diarization {
        pub use crate::server::diarization::speakers::{SpeakerHints, Speakers, find_speakers};
    }
    pub mod http_engine {
        pub use crate::server::http_engine::connection::{EngineAccess, EngineKey};
    }
    pub mod language_model {
        pub use crate::server::language_model::client::{LanguageModelOptions, ModelLimits};
        pub use crate::server::language_model::request_form::AnswerForm;
    }
    pub mod recognition {
        pub mod confidence {
            pub use crate::server::recognition::confidence::{ENOUGH, find_doubtful};
        }
        pub mod dispatcher {
            pub use crate::server::recognition::dispatcher::{Recognition, SLICE};
        }
        pub mod lazy {
            pub use crate::server::recognition::lazy::LazyRecogniser;
        }
        pub mod openai {
            pub mod engine {
                pub use crate::server::recognition::openai::engine::{EngineLimits, EngineOptions, OpenAiRecogniser};
            }
            pub mod request {
                pub use crate::server::recognition::openai::request::{EngineProtocol, wav};
            }
        }
        pub mod overlap {
            pub use crate::domain::word_overlap::{Overlap, join};
        }
        pub mod pocketsphinx {
            pub use crate::server::recognition::pocketsphinx::engine::{PocketSphinx, Settings};
        }
        pub mod recogniser {
            pub use crate::server::recognition::recogniser::{
                ChunkWord, LearntVocabulary, RecognisedChunk, RecognisedWord, Recogniser, RecogniserError, SpeechChunk,
            };
        }
        pub mod registry {
            pub use crate::server::recognition::registry::{NamedRecogniser, Recognisers};
        }
        pub mod spare_places {
            pub use crate::server::recognition::spare_places::SparePlaces;
        }
        pub mod transcribe {
            pub use crate::server::recognition::transcribe::{LONGEST, TranscribeError, TranscribeOptions, transcribe};
        }
        pub mod whisper {
            pub use crate::server::recognition::whisper::engine::{ModelLocation, WhisperOptions, WhisperRecogniser};
        }
        pub mod unsupported {
            pub use crate::server::recognition::unsupported::{PARAMETERS, WITH_APERTIUM, WITH_LANGUAGE_MODEL};
        }
        pub mod worker {
            pub use crate::server::recognition::worker::{AGAIN, Worker};
        }
    }
    pub mod redaction {
        pub use crate::server::redaction::{EntityType, RedactionPlan, kinds_of, redact};
    }
    pub mod text_enrichments {
        pub use crate::server::text_enrichments::{
            Polarity, find_chapters, find_entities, find_sentiments, find_summary, keywords, polarity,
        };
    }
    pub mod translation {
        pub use crate::server::translation::apertium::ApertiumOptions;
    }
    pub mod service {
        pub use crate::server::service::{REQUESTS, RunningService, ServiceOptions, StartError, health, start};
    }
    pub mod storage {
        pub mod disk_quota {
            pub use crate::server::storage::disk_quota::DiskQuota;
        }
        pub mod index {
            pub use crate::server::storage::index::{DeliveryKind, Due, MAX_DEFERRED, NextCall, QueueKind};
        }
        pub mod kill_count {
            pub use crate::server::storage::kill_count::TranscriptionWork;
        }
        pub mod live {
            pub use crate::server::storage::live::LiveRecords;
        }
        pub mod log {
            pub mod framing {
                pub use crate::server::storage::log::framing::{Frame, decode, encode, split_frames};
            }
            pub mod group_commit {
                pub use crate::server::storage::log::group_commit::GroupCommit;
            }
            pub mod ledger {
                pub use crate::server::storage::log::ledger::LogLine;
            }
            pub mod recovery {
                pub use crate::server::storage::log::recovery::open;
            }
        }
        pub mod record_meta {
            pub use crate::server::storage::record_meta::RecordMeta;
        }
        pub mod transcriptions {
            pub use crate::server::storage::transcriptions::{
                Acceptance, CreateAudio, CreateCommand, DeleteResult, StoreOpenError, StoreRules, TakenTranscription,
                TranscriptionEnd, TranscriptionFailure, TranscriptionStore,
            };
        }
        pub mod uploads {
            pub use crate::server::storage::uploads::{
                A_DAY, UploadLimits, UploadRetention, UploadRules, UploadStoreError,
            };
        }
    }
    pub mod webhooks {
        pub mod dispatcher {
            pub use crate::server::webhooks::dispatcher::ServiceWebhook;
        }
        pub mod policy {
            pub use crate::server::webhooks::policy::{DeliveryFailure, DeliveryRetries};
        }
        pub mod signature {
            pub use crate::server::webhooks::signature::SigningSecret;
        }
    }
}
pub mod source {
    pub mod metadata {
        pub mod file_look {
            pub use crate::source::metadata::file_look::{FileLook, stat};
        }
    }
    pub mod mount {
        pub mod disk {
            pub use crate::source::mount::disk::Disk;
        }
        pub mod source_mount {
            pub use crate::source::mount::source_mount::Mount;
        }
    }
    pub mod scan {
        pub mod folder_scan {
            pub use crate::source::scan::folder_scan::{FolderScan, full_path};
        }
        pub mod traverse {
            pub use crate::source::scan::traverse::{TraverseTarget, TraversedItem, traverse};
        }
    }
}
pub mod store {
    pub mod contract {
        pub use crate::store::contract::{
            ALL, Admission, Backups, BudgetOrder, Budgets, ClaimLimit, Claimed, Claims, CommandOutcome, Commands,
            CopiedRows, DuplicateCheck, Filter, GroupFilter, HistoryEntry, Hold, JobCounts, JobSubset, Jobs,
            KnownPurchase, Lease, Lifecycle, NewestPurchase, OrderedClaims, Purchases, Queries, Renamed,
            RenderingCount, RowCopyError, Store, StoreError, WaitingGroup,
        };
    }
    pub mod memory {
        pub use crate::store::memory::{MemoryDisk, empty, open};
    }
    pub mod params {
        pub use crate::store::params::ParamFiles;
    }
    pub mod queue {
        pub use crate::store::queue::{Barrier, Journal, QueueStore, Rows, StoredRow};
    }
    pub mod sled {
        pub use crate::store::sled::{open, open_at};
    }
}
pub mod callbacks {
    pub mod receiver {
        pub use crate::callbacks::receiver::{CallbackListener, listen, start};
    }
}
pub mod voice {
    pub use crate::voice::cepstrum::Band;
    pub use crate::voice::gaussian::FrameSums;
    pub use crate::voice::people::people;
    pub use crate::voice::speaker_voices::SpeakerVoice;
    pub use crate::voice::voice_frames::VoiceFrames;
    pub use crate::voice::voice_match::{SURE, VoiceComparison};
    pub use crate::voice::voice_model::VoiceModel;
}
pub mod wire {
    pub mod address {
        pub use crate::wire::address::PlainHttp;
    }
    pub mod enrichment {
        pub use crate::wire::enrichment::{Either, Enrichments, Shapes};
    }
    pub mod error {
        pub use crate::wire::error::ErrorBody;
    }
    pub mod event {
        pub use crate::wire::event::WebhookEvent;
    }
    pub mod live {
        pub use crate::wire::live::{read, read_stored};
    }
    pub mod page {
        pub use crate::wire::page::{ListQuery, RecordPage};
    }
    pub mod parameter_check {
        pub use crate::wire::parameter_check::Side;
    }
    pub mod params {
        pub use crate::wire::params::{CallbackMethod, Params, SummaryType};
    }
    pub mod published {
        pub use crate::wire::published::{parameters, with_defaults};
    }
    pub mod record {
        pub use crate::wire::record::{Created, Record, Status};
    }
    pub mod result {
        pub use crate::wire::result::{File, ResultBody, Spoken, Subtitles};
    }
    pub mod timestamps {
        pub use crate::wire::timestamps::{format, parse};
    }
    pub mod upload {
        pub use crate::wire::upload::Uploaded;
    }
    pub mod v1_params {
        pub use crate::wire::v1_params::{is_result, upgrade_params, upgrade_result};
    }
}
