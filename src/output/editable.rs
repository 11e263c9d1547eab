//! The text of a result as an editor shows it: the captions that the outputs have, and the recognised words under them. Pure.

use crate::captions::{CaptionFormat, Cue, Layout, lay_out};
use crate::domain::format::Format;
use crate::domain::speaker_names::SpeakerNames;
use crate::domain::transcript::{Transcript, Utterance};
use crate::output::accepted::read_cues;
use crate::wire::transcript_reader::ReadTranscript;

/// What an editor works with.
#[derive(Debug, Clone, PartialEq)]
pub struct EditableText {
    /// In order of time.
    pub cues: Vec<Cue>,
    pub transcript: Transcript,
    pub names: SpeakerNames,
    /// The rules that captions are checked by.
    pub layout: Layout,
}

/// Returns the text of a result. `ignores_sent_subtitles`: those that the service sent are laid out again.
pub fn editable_text(speech: &ReadTranscript, layout: Layout, ignores_sent_subtitles: bool) -> EditableText {
    let (transcript, names) = (speech.transcript(), speech.speaker_names());
    let sent = if ignores_sent_subtitles { None } else { sent_cues(speech) };
    let mut cues = sent.unwrap_or_else(|| lay_out(transcript, &layout));
    if cues.iter().all(|cue| cue.speaker.is_none()) {
        cues.iter_mut().for_each(|cue| cue.speaker = speaker_of(cue, transcript));
    }
    EditableText { cues, transcript: transcript.clone(), names: names.clone(), layout }
}

/// WebVTT goes first: it names speakers.
fn sent_cues(speech: &ReadTranscript) -> Option<Vec<Cue>> {
    let read = |(wanted, format): (Format, CaptionFormat)| {
        let (_, file) = speech.subtitles_by_format().iter().find(|(kind, _)| *kind == wanted)?;
        let cues = read_cues(file, format, speech.speaker_names()).cues;
        (!cues.is_empty()).then_some(cues)
    };
    [(Format::Vtt, CaptionFormat::Vtt), (Format::Srt, CaptionFormat::Srt)].into_iter().find_map(read)
}

/// Returns who speaks longest while a caption is shown.
fn speaker_of(cue: &Cue, transcript: &Transcript) -> Option<u32> {
    let (start, end) = (cue.start.as_secs_f64(), cue.end.as_secs_f64());
    let shared = |said: &Utterance| said.end.min(end) - said.start.max(start);
    let during = transcript.utterances.iter().filter(|said| shared(said) > 0.0);
    during.max_by(|one, other| shared(one).total_cmp(&shared(other)))?.speaker
}
