//! A copy of all rows as of one moment, made while others go on changing them. Rows are copied in the order of their
//! keys, some at a time; whoever changes a row that was not copied yet first keeps what it was.

use crate::store::row_file::RowBytes;
use std::collections::BTreeMap;
use std::ops::Bound;

/// The state of a copy.
#[derive(Debug, Default)]
pub(super) struct RowCopy {
    /// The key of the last row that was copied.
    after: Option<Vec<u8>>,
    /// What rows that have changed since were when the copy began; `None` for those that did not exist.
    before: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

impl RowCopy {
    /// Keeps what a row is, if it is about to change and was not copied yet.
    pub(super) fn keep_before(
        &mut self,
        key: &[u8],
        read: impl FnOnce() -> ::sled::Result<Option<::sled::IVec>>,
    ) -> ::sled::Result<()> {
        let is_copied = self.after.as_deref().is_some_and(|after| key <= after);
        if !is_copied && !self.before.contains_key(key) {
            let value = read()?.map(|value| value.to_vec());
            self.before.insert(key.to_vec(), value);
        }
        Ok(())
    }

    /// Returns the next rows, at most `most`; none after the last.
    pub(super) fn next_rows(&mut self, db: &::sled::Db, most: usize) -> ::sled::Result<Vec<RowBytes>> {
        let mut rows = Vec::new();
        let mut after = self.after.take();
        let begin = after.clone().map_or(Bound::Unbounded, Bound::Excluded);
        let mut present = db.range((begin, Bound::<Vec<u8>>::Unbounded)).peekable();
        while rows.len() < most {
            let next_present = match present.peek() {
                Some(Ok((key, _))) => Some(key.to_vec()),
                Some(Err(error)) => return Err(error.clone()),
                None => None,
            };
            let next_before = self.before.first_key_value().map(|(key, _)| key.clone());
            let Some(key) = next_present.iter().chain(&next_before).min().cloned() else { break };
            let value = if next_present.as_ref() == Some(&key) { present.next().transpose()? } else { None };
            let value = value.map(|(_, value)| value.to_vec());
            let value = self.before.remove(&key).unwrap_or(value);
            after = Some(key.clone());
            rows.extend(value.map(|value| RowBytes { key, value }));
        }
        self.after = after;
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// A change of the rows: a key, and its new value.
    type Change = (u8, Option<u8>);

    fn change(db: &::sled::Db, copy: &mut RowCopy, (key, value): Change) {
        copy.keep_before(&[key], || db.get([key])).unwrap();
        match value {
            Some(value) => drop(db.insert([key], vec![value]).unwrap()),
            None => drop(db.remove([key]).unwrap()),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_copy_has_every_row_as_it_was_when_it_began(
            first in proptest::collection::btree_map(0..20_u8, any::<u8>(), 0..15),
            steps in proptest::collection::vec((1..4_usize, proptest::collection::vec((0..20_u8, any::<Option<u8>>()), 0..6)), 0..12),
        ) {
            let db = ::sled::Config::new().temporary(true).open().unwrap();
            for (key, value) in &first {
                db.insert([*key], vec![*value]).unwrap();
            }
            let (mut copy, mut rows) = (RowCopy::default(), Vec::new());
            for (most, changes) in steps {
                changes.into_iter().for_each(|step| change(&db, &mut copy, step));
                rows.extend(copy.next_rows(&db, most).unwrap());
            }
            loop {
                let more = copy.next_rows(&db, 3).unwrap();
                if more.is_empty() {
                    break;
                }
                rows.extend(more);
            }
            let copied: BTreeMap<u8, u8> = rows.iter().map(|row| (row.key[0], row.value[0])).collect();
            prop_assert_eq!(copied.len(), rows.len());
            prop_assert_eq!(copied, first);
        }
    }
}
