//! How many bytes the numbers of a tensor take in a file, by the type numbers of ggml (`enum ggml_type` of `ggml.h`).

/// How the numbers of a tensor are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TensorType {
    number: i32,
    pub name: &'static str,
    /// How many numbers are stored together.
    block: u64,
    /// How many bytes such a block takes.
    bytes: u64,
}

const fn tensor_type(number: i32, name: &'static str, block: u64, bytes: u64) -> TensorType {
    TensorType { number, name, block, bytes }
}

/// The types that whisper.cpp's converter and its program `quantize` write.
const TYPES: [TensorType; 14] = [
    tensor_type(0, "f32", 1, 4),
    tensor_type(1, "f16", 1, 2),
    tensor_type(2, "q4_0", 32, 18),
    tensor_type(3, "q4_1", 32, 20),
    tensor_type(6, "q5_0", 32, 22),
    tensor_type(7, "q5_1", 32, 24),
    tensor_type(8, "q8_0", 32, 34),
    tensor_type(10, "q2_K", 256, 84),
    tensor_type(11, "q3_K", 256, 110),
    tensor_type(12, "q4_K", 256, 144),
    tensor_type(13, "q5_K", 256, 176),
    tensor_type(14, "q6_K", 256, 210),
    tensor_type(15, "q8_K", 256, 292),
    tensor_type(30, "bf16", 1, 2),
];

impl TensorType {
    pub fn of(number: i32) -> Option<Self> {
        TYPES.into_iter().find(|one| one.number == number)
    }

    /// Returns the bytes of so many numbers; `None` if they are no whole number of blocks, or too many.
    pub fn bytes_of(self, numbers: u64) -> Option<u64> {
        if !numbers.is_multiple_of(self.block) {
            return None;
        }
        (numbers / self.block).checked_mul(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_whole_blocks() {
        let bytes = |number, numbers| TensorType::of(number).and_then(|one| one.bytes_of(numbers));
        assert_eq!((bytes(0, 3), bytes(1, 3), bytes(30, 3)), (Some(12), Some(6), Some(6)));
        assert_eq!((bytes(8, 64), bytes(14, 512)), (Some(68), Some(420)));
        assert_eq!((bytes(8, 33), bytes(4, 32), bytes(0, u64::MAX)), (None, None, None));
    }
}
