//! The endpoint that finds what was said in all transcripts.

use super::call::{ApiAnswer, Call, json_of, unexpected};
use super::reads::moment;
use crate::control::transport::protocol::{ControlAnswer, ControlRequest, SearchHit, SearchPage, SearchQuery};
use crate::domain::names::SourceName;
use crate::search::{ExcerptPart, PassageFilter};
use crate::wire::timestamps;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub async fn search(call: Call) -> ApiAnswer {
    let params: SearchParams = call.query()?;
    let filter = PassageFilter {
        source: params.source.map(SourceName::new),
        since: moment(params.since.as_deref())?,
        before: moment(params.before.as_deref())?,
        speaker: params.speaker,
        language: params.language,
    };
    let SearchParams { q: query, newest, offset, limit, .. } = params;
    let request = ControlRequest::Search(SearchQuery { query, filter, newest, offset, limit });
    let ControlAnswer::Found(page) = call.ask(request).await? else { return unexpected() };
    json_of(HitList::of(*page))
}

/// What is looked for in all transcripts.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchParams {
    /// Words that must all occur in a passage, "phrases" in quotation marks, -words that must not occur, and beginnings*.
    #[schemars(length(min = 1))]
    pub q: String,
    #[serde(default)]
    pub source: Option<String>,
    /// Only recordings of this time or later, as in RFC 3339.
    #[serde(default)]
    pub since: Option<String>,
    /// Only recordings before this time.
    #[serde(default)]
    pub before: Option<String>,
    /// A name, or "Speaker 1".
    #[serde(default)]
    pub speaker: Option<String>,
    /// The code of a language.
    #[serde(default)]
    pub language: Option<String>,
    /// The newest recordings first, not the best hits.
    #[serde(default)]
    pub newest: bool,
    /// How many hits precede the page: `next` of the page before.
    #[serde(default)]
    pub offset: u32,
    /// The most hits of the page.
    #[serde(default = "default_hits")]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: u32,
}

fn default_hits() -> u32 {
    20
}

/// A page of hits.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HitList {
    pub hits: Vec<HitObject>,
    /// How many hits there are. More than 10000 are not counted.
    pub total: u64,
    pub is_total_exact: bool,
    /// The `offset` of the next page; null after the last. A page may be short though more follow.
    pub next: Option<u32>,
    /// Whether all written jobs are in the index; if not, it is being built.
    pub is_complete: bool,
}

/// A passage of a transcript that was found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HitObject {
    pub job: u64,
    pub source: String,
    /// The path of the recording below its source; bytes that are not UTF-8 are replaced.
    pub path: String,
    /// When the first of the words is said, from the start of the recording.
    pub start_seconds: f64,
    /// The date of the recording.
    pub at: String,
    /// A name, or "Speaker 1"; null if the speakers are not told apart.
    pub speaker: Option<String>,
    pub language: Option<String>,
    /// What is said there, in pieces.
    pub excerpt: Vec<ExcerptPiece>,
}

/// A piece of an excerpt.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExcerptPiece {
    pub text: String,
    /// Whether it is what was looked for.
    #[serde(rename = "match")]
    pub is_match: bool,
}

impl HitList {
    pub fn of(page: SearchPage) -> Self {
        let SearchPage { hits, total, is_total_exact, next, index } = page;
        let hits = hits.into_iter().map(HitObject::of).collect();
        Self { hits, total, is_total_exact, next, is_complete: index.is_complete }
    }
}

impl HitObject {
    fn of(hit: SearchHit) -> Self {
        let piece = |part: ExcerptPart| ExcerptPiece { text: part.text, is_match: part.is_match };
        Self {
            job: hit.job.0,
            source: hit.key.source.to_string(),
            path: hit.key.path.lossy().into_owned(),
            start_seconds: hit.start_ms as f64 / 1e3,
            at: timestamps::format(hit.at),
            speaker: hit.speaker,
            language: hit.language,
            excerpt: hit.excerpt.into_iter().map(piece).collect(),
        }
    }
}
