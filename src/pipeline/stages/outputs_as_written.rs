//! Whether a job that started over needs its result at all.

use crate::domain::job::Job;
use crate::domain::output_text::RenderedAs;
use crate::domain::token::PurchaseKey;
use crate::output::results::Results;
use crate::pipeline::stages::write::rerender::{FileState, look};
use crate::source::mount::source_mount::Mount;
use std::sync::Arc;

/// Whether a job has all that its result can give, although the result is not kept: its recording was found again with
/// the content that was bought, as after a copy of the folder, and every output is there as scribed wrote it. Then the
/// service, which may have deleted the transcription, is not asked for it. A command for a new result
/// (`scribed retry --fresh`) forgets what the outputs were made from, and gets one.
pub async fn are_outputs_as_written(results: &Results, mount: &Arc<Mount>, job: &Job, purchase: &PurchaseKey) -> bool {
    let is_same_purchase = job.made_from.as_ref() == Some(purchase) && !job.outputs.is_empty();
    // The outputs are those of an earlier result.
    let is_text_other = job.rendered_as.as_ref() == Some(&RenderedAs::with_another_text());
    let is_kept = || job.stage.transcription().is_some_and(|transcription| results.has(transcription));
    if !is_same_purchase || is_text_other || is_kept() || mount.there().await.is_err() {
        return false;
    }
    let known = look(mount, job).await;
    known.iter().filter(|known| known.is_current).all(|known| known.state == FileState::Ours(known.output.hash))
}
