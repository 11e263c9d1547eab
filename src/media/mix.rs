//! What becomes of the channels of a recording: the same with ffmpeg as in this process.

/// What becomes of the channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mix {
    /// Each stays for itself.
    Separate(u32),
    /// Those of these numbers, from 1, are mixed to one; empty: all.
    One(Vec<u32>),
}

impl Mix {
    /// Returns how many channels are left.
    pub(super) fn channels(&self) -> usize {
        match self {
            Self::Separate(channels) => *channels as usize,
            Self::One(_) => 1,
        }
    }

    /// Returns ffmpeg's filter, if it needs one.
    pub(super) fn filter(&self) -> Option<String> {
        let Self::One(only) = self else { return None };
        let share = 1.0 / only.len() as f64;
        let parts: Vec<String> = only.iter().map(|one| format!("{share}*c{}", one.saturating_sub(1))).collect();
        (!only.is_empty()).then(|| format!("pan=mono|c0={}", parts.join("+")))
    }

    /// Does the same with decoded samples of every channel.
    pub(super) fn apply(&self, planes: Vec<Vec<i16>>) -> Vec<Vec<i16>> {
        match self {
            Self::Separate(_) => planes,
            Self::One(only) => vec![mix(planes, only)],
        }
    }
}

/// Mixes the channels that count. A single one is mixed already.
fn mix(mut planes: Vec<Vec<i16>>, only: &[u32]) -> Vec<i16> {
    if planes.len() > 1 {
        let counts = |number: usize| only.is_empty() || only.iter().any(|one| *one as usize == number + 1);
        let counted = planes.into_iter().enumerate().filter(|(number, _)| counts(*number));
        planes = counted.map(|(_, plane)| plane).collect();
    }
    if planes.len() < 2 {
        return planes.pop().unwrap_or_default();
    }
    let length = planes.iter().map(Vec::len).min().unwrap_or(0);
    let mean = |at: usize| planes.iter().map(|plane| i32::from(plane[at])).sum::<i32>() / planes.len() as i32;
    (0..length).map(|at| mean(at) as i16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_mixed_equally() {
        let planes = vec![vec![100, -100], vec![300, 300], vec![i16::MAX, i16::MIN]];
        assert_eq!(mix(planes.clone(), &[1, 2]), [200, 100]);
        assert_eq!(mix(planes.clone(), &[3]), [i16::MAX, i16::MIN]);
        assert_eq!(mix(planes, &[]), [11_055, -10_856]);
        assert_eq!(mix(vec![vec![7]], &[2]), [7], "ffmpeg has mixed it");
        assert_eq!(mix(Vec::new(), &[]), Vec::<i16>::new());
    }
}
