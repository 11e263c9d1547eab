//! Gaussians with full covariance, and the Bayesian information criterion (BIC) that compares them.

use super::cepstrum::{COEFFICIENTS as N, Cepstrum};

/// The entries of a symmetric matrix, row by row up to the diagonal.
pub const ENTRIES: usize = N * (N + 1) / 2;

/// Added to each variance: a few frames of equal sound have none.
const LEAST_VARIANCE: f64 = 1e-3;

/// The sums of some frames, from which their mean and covariance follow. Sums of two sets are those of both together.
#[derive(Clone)]
pub struct FrameSums {
    pub count: f64,
    sums: [f64; N],
    products: Box<[f64; ENTRIES]>,
}

impl FrameSums {
    pub fn of<'f>(frames: impl IntoIterator<Item = &'f Cepstrum>) -> Self {
        let mut all = Self { count: 0.0, sums: [0.0; N], products: Box::new([0.0; ENTRIES]) };
        for frame in frames {
            all.count += 1.0;
            let mut entries = all.products.iter_mut();
            for (row, value) in frame.iter().enumerate() {
                all.sums[row] += f64::from(*value);
                // The row ends first, so that no entry is taken in vain.
                for (other, entry) in frame[..=row].iter().zip(&mut entries) {
                    *entry += f64::from(*value) * f64::from(*other);
                }
            }
        }
        all
    }

    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        let mut both = self.clone();
        both.count += other.count;
        both.sums.iter_mut().zip(&other.sums).for_each(|(sum, more)| *sum += more);
        both.products.iter_mut().zip(other.products.iter()).for_each(|(product, more)| *product += more);
        both
    }

    pub fn gaussian(&self) -> Gaussian {
        let (mean, covariance) = self.mean_and_covariance();
        Gaussian::new(mean, &covariance)
    }

    /// Returns the covariance of the frames, row by row up to the diagonal.
    pub fn covariance(&self) -> [f64; ENTRIES] {
        let (_, covariance) = self.mean_and_covariance();
        let mut entries = covariance.iter().enumerate().flat_map(|(row, values)| values[..=row].iter().copied());
        std::array::from_fn(|_| entries.next().unwrap_or_default())
    }

    fn mean_and_covariance(&self) -> ([f64; N], [[f64; N]; N]) {
        let mean = self.sums.map(|sum| sum / self.count);
        let mut covariance = [[0.0; N]; N];
        let mut entry = 0;
        for row in 0..N {
            for column in 0..=row {
                covariance[row][column] = self.products[entry] / self.count - mean[row] * mean[column];
                entry += 1;
            }
            covariance[row][row] += LEAST_VARIANCE;
        }
        (mean, covariance)
    }
}

/// Returns the logarithm of the determinant of a covariance with these entries, row by row up to the diagonal.
pub fn log_determinant(entries: &[f64; ENTRIES]) -> f64 {
    let mut covariance = [[0.0; N]; N];
    let mut entries = entries.iter();
    for (row, values) in covariance.iter_mut().enumerate() {
        // The row ends first, so that no entry is taken in vain.
        values[..=row].iter_mut().zip(&mut entries).for_each(|(value, entry)| *value = *entry);
    }
    Gaussian::new([0.0; N], &covariance).log_determinant
}

/// A normal distribution of cepstra.
pub struct Gaussian {
    mean: [f64; N],
    /// The lower triangle of the Cholesky factor of the covariance.
    factor: [[f64; N]; N],
    /// The logarithm of the determinant of the covariance.
    pub log_determinant: f64,
}

impl Gaussian {
    /// `covariance` needs its lower triangle only.
    fn new(mean: [f64; N], covariance: &[[f64; N]; N]) -> Self {
        let mut factor = [[0.0; N]; N];
        for row in 0..N {
            for column in 0..=row {
                let known: f64 = (0..column).map(|k| factor[row][k] * factor[column][k]).sum();
                let rest = covariance[row][column] - known;
                // Rounding may make the variance of nearly equal frames negative.
                let value = if row == column { rest.max(LEAST_VARIANCE).sqrt() } else { rest / factor[column][column] };
                factor[row][column] = value;
            }
        }
        let log_determinant = 2.0 * (0..N).map(|k| factor[k][k].ln()).sum::<f64>();
        Self { mean, factor, log_determinant }
    }

    /// Returns the logarithm of the density at a frame, without the part that all Gaussians share.
    pub fn log_density(&self, frame: &Cepstrum) -> f64 {
        let mut solved = [0.0; N];
        let mut distance = 0.0;
        for row in 0..N {
            let known: f64 = (0..row).map(|k| self.factor[row][k] * solved[k]).sum();
            solved[row] = (f64::from(frame[row]) - self.mean[row] - known) / self.factor[row][row];
            distance += solved[row] * solved[row];
        }
        -0.5 * (distance + self.log_determinant)
    }
}

/// Frames with the determinant of their Gaussian.
#[derive(Clone)]
pub struct Measured {
    pub sums: FrameSums,
    log_determinant: f64,
}

impl From<FrameSums> for Measured {
    fn from(sums: FrameSums) -> Self {
        let log_determinant = sums.gaussian().log_determinant;
        Self { sums, log_determinant }
    }
}

impl Measured {
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        self.sums.join(&other.sums).into()
    }

    /// Returns how much better two Gaussians describe the frames of both than one does (ΔBIC), if each number of the
    /// second Gaussian costs `penalty` times half of the logarithm of the count of frames. Above 0: two voices.
    pub fn difference(&self, other: &Self, penalty: f64) -> f64 {
        let both = self.join(other);
        let gain = both.sums.count * both.log_determinant
            - self.sums.count * self.log_determinant
            - other.sums.count * other.log_determinant;
        0.5 * gain - penalty * 0.5 * (N + ENTRIES) as f64 * both.sums.count.ln()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(crate) mod tests {
    use super::*;

    /// Frames of a seeded generator. Voices differ by how much each coefficient varies.
    pub fn frames(seed: u64, count: usize, voice: f32) -> Vec<Cepstrum> {
        let mut random = fastrand::Rng::with_seed(seed);
        // The sum of uniform numbers is nearly normal.
        let mut normal = || (0..12).map(|_| random.f32()).sum::<f32>() - 6.0;
        let scale = |k: usize| if k.is_multiple_of(2) { voice.exp() } else { (-voice).exp() };
        (0..count).map(|_| std::array::from_fn(|k| normal() * scale(k))).collect()
    }

    #[test]
    fn two_voices_are_told_from_one() {
        let measured = |frames: &[Cepstrum]| Measured::from(FrameSums::of(frames));
        let (one, same, other) = (frames(1, 200, 0.0), frames(2, 200, 0.0), frames(3, 200, 2.0));
        assert!(measured(&one).difference(&measured(&same), 2.0) < 0.0);
        assert!(measured(&one).difference(&measured(&other), 2.0) > 0.0);
    }

    #[test]
    fn sums_of_parts_are_those_of_the_whole_and_equal_frames_are_no_trouble() {
        let all = frames(4, 300, 1.0);
        let joined = FrameSums::of(&all[..120]).join(&FrameSums::of(&all[120..])).gaussian();
        let whole = FrameSums::of(&all).gaussian();
        assert!((joined.log_determinant - whole.log_determinant).abs() < 1e-6);
        assert!(whole.log_density(&all[0]) > whole.log_density(&[30.0; N]));
        let equal = FrameSums::of(&[[2.5; N]; 3]).gaussian();
        assert!(equal.log_determinant.is_finite() && equal.log_density(&[2.5; N]).is_finite());
    }
}
