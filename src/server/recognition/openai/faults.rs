//! Decides what the failures of chunks are blamed on. Pure.

use std::collections::HashMap;

/// How many times a chunk fails, each time after the engine has recognised others, until the chunk is blamed.
const ALONE: u32 = 3;

/// The most chunks whose failures are remembered.
const REMEMBERED: usize = 1_000;

/// Decides whether the engine or a chunk is to blame for failures: the engine while others fail too, the chunk once
/// others succeed.
#[derive(Debug, Default)]
pub struct ChunkFailures {
    successes: u64,
    /// By the hash of a chunk: failures after successes of others, and the successes at the last one.
    failed: HashMap<[u8; 32], (u32, u64)>,
}

impl ChunkFailures {
    pub fn succeeded(&mut self, chunk: &[u8; 32]) {
        self.successes += 1;
        self.failed.remove(chunk);
    }

    /// Records that a chunk got a wrong answer, or none in time. Returns whether the chunk is to blame.
    pub fn failed(&mut self, chunk: [u8; 32]) -> bool {
        if self.failed.len() >= REMEMBERED {
            self.failed.clear();
        }
        let (alone, seen) = self.failed.entry(chunk).or_insert((0, self.successes));
        if self.successes > *seen {
            (*alone, *seen) = (*alone + 1, self.successes);
        }
        *alone >= ALONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_blamed_once_others_succeed() {
        let (bad, good) = ([1; 32], [2; 32]);
        let mut failures = ChunkFailures::default();
        assert!((0..100).all(|_| !failures.failed(bad)), "the engine fails for all");
        for _ in 0..2 {
            failures.succeeded(&good);
            assert!(!failures.failed(bad) && !failures.failed(bad));
        }
        failures.succeeded(&good);
        assert!(failures.failed(bad) && !failures.failed(good));
        failures.succeeded(&bad);
        assert!(!failures.failed(bad));
    }
}
