//! Readers of JSON values that may be of any type: an unexpected type gives nothing and is no error. They stream, so
//! that a value of any size costs only what is kept of it.

use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::cell::Cell;
use std::fmt;

/// Reads a value; the default methods skip it, so each type implements what it expects.
pub(super) trait Reads<'de>: Sized {
    type Value;

    fn object<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<Self::Value>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn list<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Option<Self::Value>, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn text(self, _text: &str) -> Option<Self::Value> {
        None
    }

    fn number(self, _number: f64) -> Option<Self::Value> {
        None
    }

    fn null(self) -> Option<Self::Value> {
        None
    }
}

/// Reads a value that may be null: then there is none, and that is no value of another type.
pub(super) struct Nullable<R>(pub(super) R);

impl<'de, R: Reads<'de>> Reads<'de> for Nullable<R> {
    type Value = Option<R::Value>;

    fn object<A: MapAccess<'de>>(self, map: A) -> Result<Option<Self::Value>, A::Error> {
        Ok(self.0.object(map)?.map(Some))
    }

    fn list<A: SeqAccess<'de>>(self, seq: A) -> Result<Option<Self::Value>, A::Error> {
        Ok(self.0.list(seq)?.map(Some))
    }

    fn text(self, text: &str) -> Option<Self::Value> {
        self.0.text(text).map(Some)
    }

    fn number(self, number: f64) -> Option<Self::Value> {
        self.0.number(number).map(Some)
    }

    fn null(self) -> Option<Self::Value> {
        Some(None)
    }
}

/// Reads a value of any type; an unexpected type gives `None`.
pub(super) struct Lax<R>(pub(super) R);

impl<'de, R: Reads<'de>> DeserializeSeed<'de> for Lax<R> {
    type Value = Option<R::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, R: Reads<'de>> Visitor<'de> for Lax<R> {
    type Value = Option<R::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a part of a result")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(self.0.null())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(self.0.number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(self.0.number(number as f64))
    }

    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(self.0.number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(self.0.text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        self.0.list(seq)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        self.0.object(map)
    }
}

pub(super) struct Text;

impl Reads<'_> for Text {
    type Value = String;

    fn text(self, text: &str) -> Option<String> {
        Some(text.to_owned())
    }
}

pub(super) struct Number;

impl Reads<'_> for Number {
    type Value = f64;

    fn number(self, number: f64) -> Option<f64> {
        Some(number)
    }
}

/// A non-negative integer.
pub(super) struct Count;

impl Reads<'_> for Count {
    type Value = u32;

    fn number(self, number: f64) -> Option<u32> {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating, and compared")]
        let count = number as u32;
        (f64::from(count) == number).then_some(count)
    }
}

/// The number of a speaker, also as text. Older answers have a text where speakers were not told apart.
pub(super) struct Speaker;

/// The speaker in older answers without diarization.
pub(super) const NO_SPEAKER: &str = "speaker_not_activated";

impl Reads<'_> for Speaker {
    type Value = Option<u32>;

    fn number(self, number: f64) -> Option<Self::Value> {
        Count.number(number).map(Some)
    }

    fn text(self, text: &str) -> Option<Self::Value> {
        if text == NO_SPEAKER { Some(None) } else { text.parse().ok().map(Some) }
    }
}

/// A list of texts; counts the elements that are none.
pub(super) struct LaxTexts<'c>(pub(super) &'c Cell<u64>);

impl<'de> Reads<'de> for LaxTexts<'_> {
    type Value = Vec<String>;

    fn list<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Option<Vec<String>>, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = seq.next_element_seed(Lax(Text))? {
            self.0.set(self.0.get() + u64::from(text.is_none()));
            // No recording has more languages.
            texts.extend(text.filter(|_| texts.len() < 1_000));
        }
        Ok(Some(texts))
    }
}

/// Reads a key; a key that is longer than every known one is dropped.
pub(super) struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok((key.len() <= 20).then(|| key.to_owned()))
    }
}

pub(super) fn text<'de, A: MapAccess<'de>>(map: &mut A) -> Result<String, A::Error> {
    Ok(map.next_value_seed(Lax(Text))?.unwrap_or_default())
}
