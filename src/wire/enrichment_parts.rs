//! Where the enrichments are in an answer: each as its own piece of JSON text, so that one which cannot be read costs
//! only itself.

use crate::domain::missing_enrichment::Enrichment;
use crate::wire::bounded_value::BoundedValue;
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

/// The most elements of one list that are read: more than any recording has sentences.
const MAX_ELEMENTS: usize = 1_000_000;

/// The pieces of an answer that hold its enrichments. There may be several for one, because sentences can be in two
/// places.
#[derive(Debug, Default)]
pub(super) struct EnrichmentParts<'a>(BTreeMap<Enrichment, Vec<&'a RawValue>>);

impl<'a> EnrichmentParts<'a> {
    /// Finds the enrichments in an answer, or in anything else; then there are none.
    pub(super) fn of(answer: &'a str) -> Self {
        let mut parts: BTreeMap<Enrichment, Vec<&RawValue>> = BTreeMap::new();
        let result = object(answer).remove("result").map(RawValue::get).map(object).unwrap_or_default();
        let mut add = |name: &str, value: &'a RawValue| {
            let enrichment = Enrichment::of_name(name);
            enrichment.into_iter().for_each(|one| parts.entry(one).or_default().push(value));
        };
        if let Some(sentences) = result.get("transcription").and_then(|said| object(said.get()).remove("sentences")) {
            add(Enrichment::Sentences.name(), sentences);
        }
        result.iter().for_each(|(name, value)| add(name, value));
        Self(parts)
    }

    /// Returns the pieces of an enrichment that are neither null nor false.
    pub(super) fn of_enrichment(&self, enrichment: Enrichment) -> impl Iterator<Item = &'a RawValue> + use<'a> {
        let parts = self.0.get(&enrichment).cloned().unwrap_or_default();
        parts.into_iter().filter(|part| is_something(part))
    }
}

/// Whether a value is neither null nor false.
pub(super) fn is_something(value: &RawValue) -> bool {
    !matches!(value.get(), "null" | "false")
}

/// Returns the payload of an envelope: what is under `results` or `entity`. A value that is no envelope is the payload
/// itself. `None` if the envelope has no payload.
pub(super) fn payload(envelope: &RawValue) -> Option<&RawValue> {
    const ENVELOPE: [&str; 4] = ["success", "is_empty", "exec_time", "error"];
    let fields = object(envelope.get());
    let inner = ["results", "entity"].into_iter().find_map(|name| fields.get(name).filter(|inner| is_something(inner)));
    let is_bare = !ENVELOPE.iter().chain(&["results", "entity"]).any(|name| fields.contains_key(*name));
    inner.copied().or(is_bare.then_some(envelope))
}

/// Whether an envelope, or an element of a list, says that it was not done.
pub(super) fn has_failed(envelope: &RawValue) -> bool {
    let fields = object(envelope.get());
    fields.get("success").is_some_and(|success| success.get() == "false")
        || fields.get("error").is_some_and(|error| is_something(error))
}

/// Returns the fields of an object, the last one of each name; none if the text is anything else.
pub(super) fn object(json: &str) -> BTreeMap<Cow<'_, str>, &RawValue> {
    serde_json::from_str::<Object<'_>>(json).map(|object| object.0).unwrap_or_default()
}

/// Returns the elements of a list; `None` if the text is anything else.
pub(super) fn list(json: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str::<List<'_>>(json).ok().map(|list| list.0)
}

/// Returns a value of modest size.
pub(super) fn value(json: &RawValue) -> Option<Value> {
    serde_json::from_str::<BoundedValue>(json.get()).ok()?.0
}

struct Object<'a>(BTreeMap<Cow<'a, str>, &'a RawValue>);

struct List<'a>(Vec<&'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData)).map(Self)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for List<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListVisitor(PhantomData)).map(Self)
    }
}

struct ObjectVisitor<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for ObjectVisitor<'a> {
    type Value = BTreeMap<Cow<'a, str>, &'a RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        /// The most fields that are kept; no object of the interface has more.
        const MAX_FIELDS: usize = 1_000;
        let mut fields = BTreeMap::new();
        while fields.len() < MAX_FIELDS {
            let Some(name) = map.next_key::<Cow<'de, str>>()? else { return Ok(fields) };
            fields.insert(name, map.next_value()?);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(fields)
    }
}

struct ListVisitor<'a>(PhantomData<&'a ()>);

impl<'de: 'a, 'a> Visitor<'de> for ListVisitor<'a> {
    type Value = Vec<&'a RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while elements.len() < MAX_ELEMENTS {
            let Some(element) = seq.next_element()? else { return Ok(elements) };
            elements.push(element);
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(elements)
    }
}
