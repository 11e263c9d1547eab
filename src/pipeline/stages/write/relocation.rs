//! Recognises the outputs that came here with the recording.

use crate::domain::job::Job;
use crate::domain::token::PurchaseKey;
use crate::output::relocated::{Relocation, ending_of};
use crate::pipeline::media_file::MediaFile;
use crate::source::mount::source_mount::Mount;
use crate::store::contract::{Store, StoreError};

/// Returns what is needed to recognise outputs that came here with the recording. Only the outputs of the job that
/// had the transcription first are known: they have the same bytes wherever they lie now.
pub async fn relocation(
    store: &dyn Store,
    mount: &Mount,
    job: &Job,
    purchase_key: &PurchaseKey,
) -> Result<Relocation, StoreError> {
    let first = match store.purchase(purchase_key).await?.and_then(|bought| bought.by).filter(|by| *by != job.id) {
        Some(by) => store.job(by).await?,
        None => None,
    };
    let outputs = first.map(|first| first.outputs).unwrap_or_default();
    let known =
        outputs.into_iter().filter_map(|output| Some((ending_of(&output.file_name())?.to_owned(), output.hash)));
    let medium = MediaFile::of(mount, job);
    let (folder, recording) = (medium.folder(), medium.name());
    let is_first = job.outputs.is_empty() && job.pending_outputs.is_empty();
    Ok(Relocation { recording, folder, known: known.collect(), is_first })
}
