//! What the script of the editor asks: the text, and its draft.

use super::view;
use crate::control::transport::protocol::{
    CommandRefusal, ControlAnswer, ControlRequest, DraftHead, EditAction, EditAnswer, EditQuery, JobSelector,
    SavedDraft,
};
use crate::output::drafts::{DraftCue, DraftText};
use crate::web::api::answer::ApiProblem;
use crate::web::api::call::{ApiAnswer, Call, json_of, unexpected};
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The most bytes of a draft: a day of speech.
const MOST_BYTES: usize = 32 << 20;

/// The longest name of a tab.
const LONGEST_EDITOR: usize = 64;

#[derive(Debug, Default, Deserialize)]
struct EditorQuery {
    #[serde(default)]
    editor: String,
}

#[derive(Debug, Deserialize)]
struct SaveBody {
    base_revision: String,
    draft_revision: u64,
    editor: String,
    cues: Vec<DraftCue>,
    speakers: BTreeMap<u32, String>,
    #[serde(default)]
    language: Option<String>,
    #[serde(default)]
    replaces: bool,
}

#[derive(Debug, Deserialize)]
struct AcceptDraftBody {
    base_revision: String,
    draft_revision: u64,
    editor: String,
}

#[derive(Debug, Deserialize)]
struct DraftBody {
    draft_revision: u64,
    editor: String,
}

/// `GET /jobs/{id}/transcript.json`
pub async fn transcript(call: Call) -> ApiAnswer {
    let EditorQuery { editor } = call.query()?;
    match ask(&call, &editor, EditAction::Open).await? {
        EditAnswer::Opened(opened) => {
            let mut shown = view::opened(&opened);
            shown["editors"] = tabs(&call, &editor)?;
            json_of(shown)
        }
        _ => unexpected(),
    }
}

/// `GET /jobs/{id}/draft`
pub async fn look(call: Call) -> ApiAnswer {
    let EditorQuery { editor } = call.query()?;
    answer(&call, &editor, EditAction::Look).await
}

/// `PUT /jobs/{id}/draft`
pub async fn save(call: Call) -> ApiAnswer {
    let SaveBody { base_revision: base, draft_revision: revision, editor, cues, speakers, language, replaces } =
        call.body_up_to(MOST_BYTES).await?;
    let text = DraftText { cues, speakers };
    text.check().map_err(|why| ApiProblem::new(StatusCode::UNPROCESSABLE_ENTITY, why))?;
    answer(&call, &editor, EditAction::Save { base, revision, text, language, replaces }).await
}

/// `DELETE /jobs/{id}/draft`
pub async fn discard(call: Call) -> ApiAnswer {
    let DraftBody { draft_revision: revision, editor } = call.body().await?;
    answer(&call, &editor, EditAction::Discard { revision }).await
}

/// `POST /jobs/{id}/draft/restore`
pub async fn restore(call: Call) -> ApiAnswer {
    let DraftBody { draft_revision: revision, editor } = call.body().await?;
    answer(&call, &editor, EditAction::Restore { revision }).await
}

/// `POST /jobs/{id}/draft/accept`
pub async fn accept(call: Call) -> ApiAnswer {
    let AcceptDraftBody { base_revision: base, draft_revision: revision, editor } = call.body().await?;
    answer(&call, &editor, EditAction::Accept { base, revision }).await
}

async fn answer(call: &Call, editor: &str, action: EditAction) -> ApiAnswer {
    match ask(call, editor, action).await? {
        EditAnswer::Draft(head) => {
            let mut shown = view::head(&head);
            shown["editors"] = tabs(call, editor)?;
            json_of(shown)
        }
        EditAnswer::Saved(SavedDraft { head, lines }) => {
            let mut shown = view::head(&head);
            shown["editors"] = tabs(call, editor)?;
            shown["lines"] = json!(lines);
            json_of(shown)
        }
        EditAnswer::Overtaken(head) => Err(overtaken(&head)),
        EditAnswer::Accepted(accepted) => json_of(view::accepted(&accepted)),
        EditAnswer::Opened(_) => unexpected(),
    }
}

fn overtaken(head: &DraftHead) -> ApiProblem {
    let words = match head.by.as_str() {
        "" => "another text was accepted meanwhile; nothing was changed".to_owned(),
        by => format!("{by} saved, accepted or discarded the draft meanwhile; nothing was changed"),
    };
    ApiProblem::new(StatusCode::CONFLICT, words)
}

async fn ask(call: &Call, editor: &str, action: EditAction) -> Result<EditAnswer, ApiProblem> {
    if editor.len() > LONGEST_EDITOR || !editor.bytes().all(|c| c.is_ascii_alphanumeric()) {
        let words = "`editor` is up to 64 letters and digits";
        return Err(ApiProblem::new(StatusCode::UNPROCESSABLE_ENTITY, words));
    }
    let query = EditQuery { job: call.job()?, by: call.caller.name.clone(), editor: editor.to_owned(), action };
    match call.try_ask(ControlRequest::Edit(query)).await? {
        Ok(ControlAnswer::Edited(answer)) => Ok(answer),
        Ok(_) => Err(ApiProblem::unexpected()),
        // 409 is for a draft of another tab.
        Err(CommandRefusal::Declined(words)) => Err(ApiProblem::new(StatusCode::SERVICE_UNAVAILABLE, words)),
        Err(refusal) => Err(ApiProblem::of_refusal(refusal, StatusCode::NOT_FOUND)),
    }
}

fn tabs(call: &Call, editor: &str) -> Result<Value, ApiProblem> {
    let JobSelector::Number(job) = call.job()? else { return Ok(json!([])) };
    Ok(json!(call.api.tabs.note(job, editor, &call.caller.name, call.api.uptime())))
}
