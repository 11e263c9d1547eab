//! Finds the channels of a recording that carry the same sound, so that each is recognised once.

/// The channels in groups of equal ones, as far as the recording was read. Channels that differ once stay apart.
#[derive(Debug)]
pub struct ChannelGroups {
    /// The channels of each group in order; the first one is recognised for the whole group.
    groups: Vec<Vec<usize>>,
}

/// A channel that was equal to another one up to here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parting {
    /// The channel that was recognised for both.
    pub from: usize,
    /// The channel that is recognised separately from now on.
    pub to: usize,
}

/// Channels are equal if the power of their difference is at most this part of the louder one's: 40 dB below it. Codecs
/// that were given the same sound twice stay well below that; two microphones in one room do not.
const SAME_RATIO: f64 = 1e-4;

/// Channels are also equal if the power of their difference is at most this: the dithering of silence.
const SILENCE_POWER: f64 = 64.0;

impl ChannelGroups {
    /// Starts with one group: all channels are equal until they are found to differ.
    pub fn all_equal(count: usize) -> Self {
        Self { groups: vec![(0..count).collect()] }
    }

    /// Starts with one group for each channel.
    pub fn all_distinct(count: usize) -> Self {
        Self { groups: (0..count).map(|channel| vec![channel]).collect() }
    }

    /// Returns the first channel of each group, in order.
    pub fn leaders(&self) -> Vec<usize> {
        let mut leaders: Vec<usize> = self.groups.iter().filter_map(|group| group.first().copied()).collect();
        leaders.sort_unstable();
        leaders
    }

    /// Compares the next stretch of all channels; returns the channels that leave their group.
    pub fn update(&mut self, planes: &[Vec<i16>]) -> Vec<Parting> {
        let mut partings = Vec::new();
        for group in std::mem::take(&mut self.groups) {
            let split = split(&group, planes);
            let from = group.first().copied().unwrap_or_default();
            partings.extend(split.iter().skip(1).filter_map(|part| Some(Parting { from, to: *part.first()? })));
            self.groups.extend(split);
        }
        partings
    }
}

/// Splits a group into groups of equal channels; the first one contains the group's first channel.
fn split(group: &[usize], planes: &[Vec<i16>]) -> Vec<Vec<usize>> {
    let mut parts: Vec<Vec<usize>> = Vec::new();
    for &channel in group {
        match parts.iter_mut().find(|part| equal(&planes[part[0]], &planes[channel])) {
            Some(part) => part.push(channel),
            None => parts.push(vec![channel]),
        }
    }
    parts
}

fn equal(one: &[i16], other: &[i16]) -> bool {
    if one == other {
        return true;
    }
    let power = |samples: &mut dyn Iterator<Item = f64>| samples.map(|s| s * s).sum::<f64>() / one.len().max(1) as f64;
    let difference = power(&mut one.iter().zip(other).map(|(a, b)| f64::from(*a) - f64::from(*b)));
    let loudest = power(&mut one.iter().map(|s| f64::from(*s))).max(power(&mut other.iter().map(|s| f64::from(*s))));
    difference <= (loudest * SAME_RATIO).max(SILENCE_POWER)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wave(period: usize, amplitude: i16) -> Vec<i16> {
        (0..1600).map(|at| if (at / period).is_multiple_of(2) { amplitude } else { -amplitude }).collect()
    }

    #[test]
    fn what_differs_parts_once() {
        let mut channels = ChannelGroups::all_equal(3);
        assert_eq!(channels.update(&[wave(10, 900), wave(10, 900), wave(10, 901)]), []);
        assert_eq!(channels.leaders(), [0]);
        let apart = [Parting { from: 0, to: 1 }];
        assert_eq!(channels.update(&[wave(10, 900), wave(7, 900), wave(7, 900)]), apart);
        assert_eq!(channels.leaders(), [0, 1]);
        assert_eq!(channels.update(&[wave(10, 900), wave(7, 900), wave(9, 900)]), [Parting { from: 1, to: 2 }]);
        assert_eq!(channels.update(&[wave(5, 9), wave(5, 9), wave(5, 9)]), [], "what differed stays apart");
        assert_eq!(channels.leaders(), [0, 1, 2]);
    }

    #[test]
    fn silence_beside_speech_differs() {
        let mut channels = ChannelGroups::all_equal(2);
        assert_eq!(channels.update(&[vec![0; 1600], wave(3, 4)]), [], "the last bits are silence too");
        assert_eq!(channels.update(&[vec![0; 1600], wave(20, 100)]), [Parting { from: 0, to: 1 }]);
    }

    #[test]
    fn apart_from_the_start() {
        let mut channels = ChannelGroups::all_distinct(2);
        assert_eq!(channels.update(&[wave(2, 9), wave(2, 9)]), []);
        assert_eq!(channels.leaders(), [0, 1]);
    }
}
