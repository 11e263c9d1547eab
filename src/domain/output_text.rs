//! What is stored with a job about its outputs beyond their names: the settings that they were rendered with, and the
//! text that a person accepted.

use crate::domain::format::Format;
use crate::domain::job::{Job, Output};
use crate::domain::names::{Hash, Timestamp, TranscriptionId};
use crate::domain::request_record::RequestRecord;
use crate::domain::token::PurchaseKey;
use serde::{Deserialize, Serialize};

/// What the outputs of a job were rendered with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenderedAs {
    /// The hash of the source's settings for outputs: formats, names, place, captions.
    pub settings: Hash,
    /// The release of scribed that rendered them.
    pub release: String,
}

impl RenderedAs {
    /// Returns what is stored when the text of a job has changed since its outputs were rendered. No settings have this
    /// hash: the job counts as one that `scribed render` may change.
    pub fn with_another_text() -> Self {
        Self { settings: Hash::OF_NOTHING, release: String::new() }
    }
}

/// A text that a person accepted as that of its job: an output, or what the editor of the web page has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedText {
    pub format: Format,
    /// The hash of the accepted content, which is kept in the state directory.
    pub hash: Hash,
    /// The accepted file; `None` for a text of the editor, which has no file of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    /// The result that the text belongs to. A later result of the job is rendered without it.
    pub transcription: TranscriptionId,
    pub at: Timestamp,
    /// The user who accepted it.
    pub by: String,
    /// The hash of what scribed had written there; `None` if scribed did not write the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Hash>,
}

impl AcceptedText {
    /// Whether a file is the accepted one.
    pub fn is_of(&self, file: &Output) -> bool {
        self.output.as_ref().is_some_and(|output| output.is_same_file(file))
    }

    /// Returns the name of its file; what the editor has has none.
    pub fn name(&self) -> String {
        self.output.as_ref().map_or_else(|| "the text of the editor".to_owned(), Output::display_name)
    }

    /// Returns its file as it counts when another text is accepted: a file that a person edited, whatever is in it. What
    /// scribed itself wrote there stays scribed's.
    fn replaced(&self) -> Option<Output> {
        let is_as_written = self.written == Some(self.hash);
        let hash = if is_as_written { self.hash } else { Hash::OF_NOTHING };
        self.output.clone().map(|output| Output { hash, ..output })
    }

    /// Returns it as the outputs have it: where its own file is none of them any more, the one that scribed has written
    /// with its content takes that place, and its own counts as edited.
    #[must_use]
    pub fn placed_in(self, outputs: &[Output], earlier: &mut [Output]) -> Self {
        let Some(replaced) = self.replaced() else { return self };
        let is_there = outputs.iter().any(|output| self.is_of(output) && output.hash == self.hash);
        let Some(output) = outputs.iter().find(|output| output.hash == self.hash).filter(|_| !is_there) else {
            return self;
        };
        for left in earlier.iter_mut().filter(|left| self.is_of(left)) {
            *left = replaced.clone();
        }
        Self { output: Some(output.clone()), written: Some(self.hash), ..self }
    }

    /// Returns it with its file as it is among these: the folder of a file is stored once outputs go elsewhere.
    #[must_use]
    pub fn found_among<'o>(self, outputs: impl Iterator<Item = &'o Output> + Clone) -> Self {
        let Some(own) = &self.output else { return self };
        let is_it = |output: &&Output| output.hash == self.hash && output.name == own.name;
        let is_there = outputs.clone().any(|output| is_it(&output) && output.is_same_file(own));
        match { outputs }.find(is_it).filter(|_| !is_there) {
            Some(output) => Self { output: Some(output.clone()), ..self },
            None => self,
        }
    }

    /// Whether it has a file that a person has to keep if another text is accepted.
    pub fn is_of_a_person(&self) -> bool {
        self.output.is_some() && self.written != Some(self.hash)
    }
}

/// A change of a job's outputs that leaves its purchase as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputChange {
    pub outputs: Vec<Output>,
    pub earlier: Vec<Output>,
    /// The hashes of outputs that are about to be published.
    pub pending_outputs: Vec<Hash>,
    /// `None` keeps what is stored.
    pub request_record: Option<Box<RequestRecord>>,
    pub rendered_as: Option<RenderedAs>,
    pub accepted: Option<Box<AcceptedText>>,
}

impl OutputChange {
    /// Returns the outputs of a job with a text that is accepted now. The output of the same format that its file takes the
    /// place of counts as an earlier one, and the file of a text that was accepted before counts as edited.
    pub fn accepting(job: &Job, accepted: AcceptedText) -> Self {
        let format = |output: &Output| Format::of_name(&output.name.lossy());
        let former =
            job.accepted.as_ref().filter(|former| former.output.as_ref().is_none_or(|file| !accepted.is_of(file)));
        let former = former.and_then(|former| former.replaced());
        let as_replaced = |output: &Output| match &former {
            Some(former) if former.is_same_file(output) => former.clone(),
            _ => output.clone(),
        };
        let others = |outputs: &[Output]| -> Vec<Output> {
            let others = outputs.iter().filter(|output| !accepted.is_of(output));
            others.map(as_replaced).collect()
        };
        let is_among = job.outputs.iter().any(|output| accepted.is_of(output));
        let takes_place = |output: &Output| accepted.output.as_ref().is_some_and(|file| format(output) == format(file));
        let (replaced, mut outputs): (Vec<Output>, Vec<Output>) =
            others(&job.outputs).into_iter().partition(|output| !is_among && takes_place(output));
        outputs.extend(accepted.output.clone());
        let mut earlier: Vec<Output> = others(&job.earlier).into_iter().chain(replaced).collect();
        // A file that the job had lost sight of may be there again.
        let is_known = |former: &Output| outputs.iter().chain(&earlier).any(|output| output.is_same_file(former));
        let unknown = former.iter().find(|former| !is_known(former)).cloned();
        earlier.extend(unknown);
        Self::of_text(outputs, earlier, Some(Box::new(accepted)))
    }

    /// Returns the outputs of a job when its accepted text is taken back: what scribed had written there counts again.
    pub fn taking_back(job: &Job, accepted: &AcceptedText) -> Self {
        // Without a purchase the recording is new: files that scribed did not write are none of its outputs.
        let is_of_job = |output: &Output| !(job.is_accepted_only() && output.hash == Hash::OF_NOTHING);
        let before = |output: &Output| match (accepted.is_of(output), accepted.written) {
            (true, written) => written.map(|hash| Output { hash, ..output.clone() }),
            (false, _) => Some(output.clone()).filter(is_of_job),
        };
        let outputs = job.outputs.iter().filter_map(before).collect();
        Self::of_text(outputs, job.earlier.iter().filter_map(before).collect(), None)
    }

    fn of_text(outputs: Vec<Output>, earlier: Vec<Output>, accepted: Option<Box<AcceptedText>>) -> Self {
        let rendered_as = Some(RenderedAs::with_another_text());
        Self { outputs, earlier, pending_outputs: Vec::new(), request_record: None, rendered_as, accepted }
    }
}

/// A text that a person accepted for a recording that was not transcribed: it stands for a purchase, and cost nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AcceptedResult {
    pub purchase_key: PurchaseKey,
    /// [`TranscriptionId::accepted`].
    pub transcription: TranscriptionId,
}
