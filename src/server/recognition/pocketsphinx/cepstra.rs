//! The cepstra of a segment: what the decoder's search reads instead of samples.

/// How many rows the library takes at once. Its ring of features has room for this many beside those that its look-ahead
/// still reads (`-pl_window`, 5): of more, it overwrites some of these and ends the process.
pub const ROWS_AT_ONCE: usize = 7;

/// How many rows before and after a row its dynamic features depend on (`-feat 1s_c_d_dd`).
const WINDOW: usize = 3;

/// Rows of equal width, one for each hundredth of a second.
#[derive(Debug, Clone, PartialEq)]
pub struct Cepstra {
    width: usize,
    values: Vec<f32>,
}

impl Cepstra {
    /// Creates rows of zeros. A row is at least one number wide.
    pub fn zeros(rows: usize, width: usize) -> Self {
        let width = width.max(1);
        Self { width, values: vec![0.0; rows * width] }
    }

    pub fn len(&self) -> usize {
        self.values.len() / self.width
    }

    /// Drops all rows after the first `rows`.
    pub fn truncate(&mut self, rows: usize) {
        self.values.truncate(rows * self.width);
    }

    /// Returns a pointer to each row.
    pub fn rows(&mut self) -> Vec<*mut f32> {
        self.values.chunks_exact_mut(self.width).map(<[f32]>::as_mut_ptr).collect()
    }

    /// Returns a pointer to each row, and the last row again as often as the library does where it gets a whole segment
    /// at once: the features of the last rows depend on rows after them.
    pub fn padded_rows(&mut self) -> Vec<*mut f32> {
        let mut rows = self.rows();
        rows.extend(rows.last().copied().into_iter().flat_map(|last| [last; WINDOW]));
        rows
    }

    /// Subtracts the mean of all rows whose energy (the first number) is not negative, as the library does where it
    /// gets a whole segment at once (`-cmn batch`): it removes what the microphone and the line add.
    pub fn subtract_mean(&mut self) {
        let mut mean = vec![0.0_f32; self.width];
        let mut counted = 0_u16;
        for row in self.values.chunks_exact(self.width).filter(|row| row[0] >= 0.0) {
            mean.iter_mut().zip(row).for_each(|(mean, value)| *mean += value);
            counted = counted.saturating_add(1);
        }
        if counted == 0 {
            return;
        }
        mean.iter_mut().for_each(|mean| *mean /= f32::from(counted));
        for row in self.values.chunks_exact_mut(self.width) {
            row.iter_mut().zip(&mean).for_each(|(value, mean)| *value -= mean);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cepstra(values: &[f32]) -> Cepstra {
        Cepstra { width: 2, values: values.to_vec() }
    }

    #[test]
    fn the_mean_is_that_of_the_rows_with_energy() {
        let mut rows = cepstra(&[1.0, 4.0, 3.0, 8.0, -5.0, 100.0]);
        rows.subtract_mean();
        assert_eq!(rows, cepstra(&[-1.0, -2.0, 1.0, 2.0, -7.0, 94.0]));
        let mut silent = cepstra(&[-1.0, 2.0]);
        silent.subtract_mean();
        assert_eq!(silent, cepstra(&[-1.0, 2.0]), "nothing is divided by zero");
    }

    #[test]
    fn the_last_row_is_repeated() {
        let mut rows = cepstra(&[1.0, 4.0, 3.0, 8.0]);
        let (plain, padded) = (rows.rows(), rows.padded_rows());
        assert_eq!(padded, [plain[0], plain[1], plain[1], plain[1], plain[1]]);
        assert!(Cepstra::zeros(0, 13).padded_rows().is_empty());
    }
}
