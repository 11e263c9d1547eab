//! The page of the editor: the captions of a job beside its recording. What its script asks is in `web/editor`.

use super::failure::PageFailure;
use super::job::queued;
use super::recording::MediaView;
use super::shell::{Nav, Shell, page};
use crate::domain::stage::Stage;
use crate::web::access::Caller;
use crate::web::server::Api;
use askama::Template;
use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "edit.html", config = "src/web/pages/askama.toml")]
struct EditPage {
    shell: Shell,
    id: u64,
    name: String,
    media: MediaView,
}

/// Handles `GET /jobs/{id}/edit`.
pub(super) async fn get_editor(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Response, PageFailure> {
    let handler = api.latest.get();
    let job = queued(&handler, &id).await?;
    if !matches!(job.stage, Stage::Written { .. }) {
        let words = format!("job {} is {}: it has no outputs to edit yet", job.id, job.stage.kind().name());
        return Err(PageFailure::new(StatusCode::CONFLICT, words));
    }
    let media = MediaView::of(&handler, &job).await;
    let name = job.key.to_string();
    let shell = Shell::new(format!("Edit {name}"), Nav::Jobs, 2).of(&caller);
    page(&EditPage { shell, id: job.id.0, name, media })
}
