//! What the index keeps of a passage, to show a hit without its transcript: a few numbers and texts, as short as they can
//! be. Pure.

use super::passage::Passage;

/// Times are kept in steps of 10 ms.
const STEP_MS: u64 = 10;

/// Returns the bytes of a passage.
pub fn encode(passage: &Passage) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(passage.text.len() + passage.next.len() + passage.starts.len() + 32);
    for text in [&passage.text, &passage.next] {
        put_text(&mut bytes, text);
    }
    for text in [&passage.speaker, &passage.language] {
        put_text(&mut bytes, text.as_deref().unwrap_or_default());
    }
    put(&mut bytes, passage.starts.len() as u64);
    let mut last = 0;
    for start in &passage.starts {
        // Words of several voices may be out of order: the time then stays.
        let step = (start / STEP_MS).max(last);
        put(&mut bytes, step - last);
        last = step;
    }
    bytes
}

/// Returns the passage that was encoded; `None` if the bytes are damaged.
pub fn decode(bytes: &[u8]) -> Option<Passage> {
    let mut rest = bytes;
    let (text, next) = (take_text(&mut rest)?, take_text(&mut rest)?);
    let (speaker, language) = (take_text(&mut rest)?, take_text(&mut rest)?);
    let count = usize::try_from(take(&mut rest)?).ok()?;
    let (mut starts, mut last) = (Vec::with_capacity(count.min(rest.len())), 0_u64);
    for _ in 0..count {
        last = last.checked_add(take(&mut rest)?)?;
        starts.push(last.checked_mul(STEP_MS)?);
    }
    let known = |text: String| Some(text).filter(|text| !text.is_empty());
    rest.is_empty().then(|| Passage { text, next, speaker: known(speaker), language: known(language), starts })
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..63).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    put(bytes, text.len() as u64);
    bytes.extend_from_slice(text.as_bytes());
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    let length = usize::try_from(take(rest)?).ok()?;
    let (text, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    String::from_utf8(text.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_passage_comes_back(
            text in "\\PC{0,60}", next in "\\PC{0,20}", speaker in proptest::option::of("[a-z]{1,9}"),
            language in proptest::option::of("[a-z]{2}"), mut starts in proptest::collection::vec(0..9_000_000_u64, 0..50),
        ) {
            starts.iter_mut().for_each(|start| *start -= *start % STEP_MS);
            starts.sort_unstable();
            let passage = Passage { text, next, speaker, language, starts };
            prop_assert_eq!(decode(&encode(&passage)), Some(passage));
        }

        #[test]
        fn damaged_bytes_are_no_passage_or_another_one(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = decode(&bytes);
        }
    }
}
