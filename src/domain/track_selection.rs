//! Track selection: which sound of a recording is sent, if not the one that a player would choose: one of its tracks,
//! or some channels. It is part of the parameters, so another selection of the same file is another purchase.

use crate::domain::language_codes::LanguageCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fmt;
use std::num::NonZeroU32;

/// The key of the selection in the stored parameters. It is never sent to the service.
const KEY: &str = "scribed";

/// The selected sound of a recording. At least one of track and channels is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrackSelection {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    track: Option<TrackChoice>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    channels: Option<ChannelSelection>,
}

/// The choice of a sound track.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TrackChoice {
    /// Its number among the sound tracks, from 1.
    Number(NonZeroU32),
    /// The first track in a language.
    Language(LanguageCode),
}

/// Some channels of a track, in the order in which they are sent: 1 to 8 different numbers from 1 to 64.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u32>", into = "Vec<u32>")]
pub struct ChannelSelection(Vec<u32>);

impl TrackSelection {
    /// Makes a selection; `None` if nothing is selected.
    pub fn new(track: Option<TrackChoice>, channels: Option<ChannelSelection>) -> Option<Self> {
        (track.is_some() || channels.is_some()).then_some(Self { track, channels })
    }

    /// Returns the track; `None` means the one that players choose.
    pub fn track(&self) -> Option<&TrackChoice> {
        self.track.as_ref()
    }

    /// Returns the channels; `None` means all.
    pub fn channels(&self) -> Option<&ChannelSelection> {
        self.channels.as_ref()
    }

    /// Adds the selection to parameters that are stored.
    pub fn insert_into(&self, params: &mut Map<String, Value>) {
        params.insert(KEY.to_owned(), json!(self));
    }

    /// Removes the selection from stored parameters and returns it.
    ///
    /// # Errors
    /// The selection cannot be read by this release; then nothing may be sent.
    pub fn take_from(params: &mut Map<String, Value>) -> serde_json::Result<Option<Self>> {
        params.remove(KEY).map(serde_json::from_value).transpose()
    }
}

impl ChannelSelection {
    /// The most channels: FLAC cannot hold more.
    pub const MOST: usize = 8;
    pub const HIGHEST: u32 = 64;

    /// Returns the numbers, from 1, in the order in which they are sent.
    pub fn numbers(&self) -> &[u32] {
        &self.0
    }

    pub fn count(&self) -> u32 {
        self.0.len() as u32
    }
}

impl TryFrom<Vec<u32>> for ChannelSelection {
    type Error = &'static str;

    fn try_from(channels: Vec<u32>) -> Result<Self, Self::Error> {
        let is_once = |(place, channel): (usize, &u32)| !channels[..place].contains(channel);
        if channels.is_empty() || channels.len() > Self::MOST {
            return Err("must name 1 to 8 channels");
        }
        if !channels.iter().all(|channel| (1..=Self::HIGHEST).contains(channel)) {
            return Err("must be numbers from 1 to 64");
        }
        if !channels.iter().enumerate().all(is_once) {
            return Err("must name each channel once");
        }
        Ok(Self(channels))
    }
}

impl From<ChannelSelection> for Vec<u32> {
    fn from(ChannelSelection(channels): ChannelSelection) -> Self {
        channels
    }
}

/// For people: `track 2, channels 1, 3`.
impl fmt::Display for TrackSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.track {
            None => {}
            Some(TrackChoice::Number(number)) => write!(f, "track {number}")?,
            Some(TrackChoice::Language(tongue)) => write!(f, "the track in `{tongue}`")?,
        }
        let Some(channels) = self.channels() else { return Ok(()) };
        let comma = if self.track.is_some() { ", " } else { "" };
        let numbers: Vec<String> = channels.numbers().iter().map(u32::to_string).collect();
        let plural = if channels.count() == 1 { "" } else { "s" };
        write!(f, "{comma}channel{plural} {}", numbers.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channels(numbers: &[u32]) -> Option<ChannelSelection> {
        ChannelSelection::try_from(numbers.to_vec()).ok()
    }

    #[test]
    fn channels_are_numbers_each_once() {
        assert!(channels(&[2, 1]).is_some() && channels(&[64]).is_some());
        for wrong in [&[][..], &[0], &[65], &[1, 1], &[1, 2, 3, 4, 5, 6, 7, 8, 9]] {
            assert_eq!(channels(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn it_is_kept_as_it_is_written_here_for_ever() {
        let mut params = Map::from_iter([("diarization".to_owned(), json!(true))]);
        let pick =
            TrackSelection::new(TrackChoice::Language(LanguageCode::parse("ger").unwrap()).into(), channels(&[3, 1]))
                .unwrap();
        pick.insert_into(&mut params);
        assert_eq!(json!(params), json!({ "diarization": true, "scribed": { "track": "deu", "channels": [3, 1] } }));
        assert_eq!(pick.to_string(), "the track in `de`, channels 3, 1");
        assert_eq!(TrackSelection::take_from(&mut params).unwrap(), Some(pick));
        assert_eq!((TrackSelection::take_from(&mut params).unwrap(), params.len()), (None, 1));
        params.insert(KEY.to_owned(), json!({ "track": 1, "mix": true }));
        assert!(TrackSelection::take_from(&mut params).is_err(), "what a later build has written is not passed over");
        let second = TrackSelection::new(NonZeroU32::new(2).map(TrackChoice::Number), None).unwrap();
        assert_eq!((json!(second), second.to_string()), (json!({ "track": 2 }), "track 2".to_owned()));
        assert_eq!(serde_json::from_value::<TrackSelection>(json!({ "track": 2 })).unwrap(), second);
        assert_eq!(TrackSelection::new(None, None), None);
    }
}
