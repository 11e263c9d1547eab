//! Suggests the known word for a mistyped one.

/// Returns the nearest known word, if it is near enough to be a typing error: at most a third of the characters differ.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let max_distance = word.chars().count().div_ceil(3);
    let distance = |name: &&str| strsim::osa_distance(&word.to_lowercase(), &name.to_lowercase());
    known.into_iter().filter(|name| distance(name) <= max_distance).min_by_key(distance)
}
