//! Reading recordings with ffmpeg and ffprobe: duration, tracks, the sound track alone.

mod confinement;
mod duration;
mod extract_audio;
mod track_selection;
mod whole_recording;
