//! Who may use what is made for a recording: those who may use the recording.

use serde::{Deserialize, Serialize};

/// The mode and the group of a file or folder, for what is made for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Its permission bits, without those that change who a program runs as.
    pub mode: u32,
    /// The number of its group.
    pub group: u32,
}

impl Access {
    /// The mode of a new file or folder; `has_group`: whether it could be given the group. Where it could not, the
    /// group that it has may do what all others may. The owner can always use what is its own, and a file is no program.
    pub fn mode_of(self, is_folder: bool, has_group: bool) -> u32 {
        let mode = if has_group { self.mode } else { self.mode & !0o70 | self.mode & (self.mode & 0o7) << 3 };
        if is_folder { mode | 0o700 } else { mode & 0o666 | 0o600 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_could_not_be_given_widens_nothing() {
        let of = |mode: u32| Access { mode, group: 0 };
        assert_eq!((of(0o640).mode_of(false, true), of(0o640).mode_of(false, false)), (0o640, 0o600));
        assert_eq!((of(0o775).mode_of(false, false), of(0o775).mode_of(true, false)), (0o644, 0o755));
        assert_eq!((of(0o444).mode_of(false, true), of(0o050).mode_of(true, true)), (0o644, 0o750));
    }
}
