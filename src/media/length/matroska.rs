//! Determines how much audio a Matroska or WebM file contains: its head declares the length of the whole and the
//! channels of its first sound track.

use crate::media::container::matroska::{Elements, MatroskaSegment, first, float, segment, unsigned};
use crate::media::container::{Extent, ReadAt};
use crate::media::decode::Media;
use std::io;

const INFO: u32 = 0x1549_A966;
const TIMESTAMP_SCALE: u32 = 0x2A_D7B1;
const DURATION: u32 = 0x4489;
const TRACKS: u32 = 0x1654_AE6B;
const TRACK_ENTRY: u32 = 0xAE;
const TRACK_TYPE: u32 = 0x83;
const TYPE_AUDIO: u64 = 2;
const AUDIO: u32 = 0xE1;
const CHANNELS: u32 = 0x9F;
const CLUSTER: u32 = 0x1F43_B675;

/// Reads the head of the file. Returns `None` if a recorder was interrupted before it wrote the length.
pub(super) fn matroska<R: ReadAt + ?Sized>(file: &R) -> io::Result<Option<Media>> {
    let MatroskaSegment::Found { content, .. } = segment(file)? else { return Ok(None) };
    let (mut duration, mut sound) = (None, None);
    for element in Elements::within(file, content..u64::MAX) {
        let element = element?;
        match element.id {
            INFO => duration = seconds(file, element.content)?,
            TRACKS => sound = Some(first_sound(file, element.content)?),
            CLUSTER => break,
            _ => {}
        }
        if let (Some(duration), Some(sound)) = (duration, sound) {
            return Ok(Some(Media { duration, channels: sound.unwrap_or(0), has_audio: sound.is_some() }));
        }
    }
    Ok(None)
}

fn seconds<R: ReadAt + ?Sized>(file: &R, info: Extent) -> io::Result<Option<f64>> {
    let Some(duration) = first(file, info.clone(), DURATION)? else { return Ok(None) };
    let units = float(file, &duration)?;
    let scale = unsigned_in(file, info, TIMESTAMP_SCALE)?.unwrap_or(1_000_000);
    Ok(units.map(|units| units * scale as f64 / 1e9))
}

/// Returns the channels of the first sound track.
fn first_sound<R: ReadAt + ?Sized>(file: &R, tracks: Extent) -> io::Result<Option<u32>> {
    for element in Elements::within(file, tracks) {
        let track = element?;
        if track.id == TRACK_ENTRY && unsigned_in(file, track.content.clone(), TRACK_TYPE)? == Some(TYPE_AUDIO) {
            return channels(file, track.content).map(Some);
        }
    }
    Ok(None)
}

/// Returns the number of channels; 1 if the track declares none.
fn channels<R: ReadAt + ?Sized>(file: &R, track: Extent) -> io::Result<u32> {
    let Some(audio) = first(file, track, AUDIO)? else { return Ok(1) };
    let channels = unsigned_in(file, audio, CHANNELS)?;
    Ok(channels.map_or(1, |count| u32::try_from(count).unwrap_or(u32::MAX)))
}

fn unsigned_in<R: ReadAt + ?Sized>(file: &R, within: Extent, id: u32) -> io::Result<Option<u64>> {
    first(file, within, id)?.map_or(Ok(None), |content| unsigned(file, &content))
}
