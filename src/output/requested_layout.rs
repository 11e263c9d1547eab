//! The caption layout that a request asks for.

use crate::captions::Layout;
use crate::wire::params::SubtitlesConfig;
use std::time::Duration;

/// As a request asks for (interface, `subtitles_config`); the defaults for the rest.
pub fn requested_layout(config: &SubtitlesConfig) -> Layout {
    requested_over(config, Layout::default())
}

/// As a request asks for (interface, `subtitles_config`); `default` for the rest.
pub fn requested_over(config: &SubtitlesConfig, default: Layout) -> Layout {
    let seconds = |asked: Option<f64>, default| {
        asked.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(default)
    };
    let count = |asked: Option<u32>, default| asked.and_then(|n| usize::try_from(n).ok()).map_or(default, |n| n.max(1));
    Layout {
        maximum_characters_per_row: count(config.maximum_characters_per_row, default.maximum_characters_per_row),
        maximum_rows_per_caption: count(config.maximum_rows_per_caption, default.maximum_rows_per_caption),
        minimum_duration: seconds(config.minimum_duration, default.minimum_duration),
        maximum_duration: seconds(config.maximum_duration, default.maximum_duration).max(Duration::from_millis(1)),
        ..default
    }
}
