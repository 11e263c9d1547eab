//! The known word that a mistyped one was meant to be.

/// The nearest of the known words, where one is near enough to be a slip of the hand.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let far = word.chars().count().div_ceil(3);
    let distance = |name: &&str| strsim::osa_distance(&word.to_lowercase(), &name.to_lowercase());
    known.into_iter().filter(|name| distance(name) <= far).min_by_key(distance)
}
