//! Reads JSON values that do not belong to the transcript, up to a size. A larger value would take many times its
//! length in memory, so it counts as absent. Nothing that was paid for is in these values.

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::fmt;

/// The most values that are kept, nested ones included.
const MAX_VALUES: u32 = 100_000;

/// A JSON value; `None` if it contains too many values.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BoundedValue(pub Option<Value>);

impl BoundedValue {
    /// Returns a field, if the value is an object.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.as_ref()?.get(key)
    }
}

impl<'de> Deserialize<'de> for BoundedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        ValueReader(&Cell::new(MAX_VALUES)).deserialize(deserializer).map(Self)
    }
}

/// Reads one value; the cell holds how many more values are allowed.
struct ValueReader<'b>(&'b Cell<u32>);

impl ValueReader<'_> {
    fn count(&self, value: Value) -> Option<Value> {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        (left > 0).then_some(value)
    }

    fn is_exhausted(&self) -> bool {
        self.0.get() == 0
    }
}

impl<'de> DeserializeSeed<'de> for ValueReader<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueReader<'_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(self.count(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(self.count(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(self.count(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(self.count(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(self.count(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(self.count(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Self::Value, E> {
        Ok(self.count(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while !self.is_exhausted() {
            match seq.next_element_seed(ValueReader(self.0))? {
                Some(element) => list.extend(element),
                None => return Ok(self.count(Value::Array(list))),
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut object = Map::new();
        while !self.is_exhausted() {
            match map.next_key::<String>()? {
                Some(key) => drop(map.next_value_seed(ValueReader(self.0))?.map(|value| object.insert(key, value))),
                None => return Ok(self.count(Value::Object(object))),
            }
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_of_modest_size_is_kept_as_it_is_and_more_counts_as_absent() {
        let text = r#"{"a":[1,-2,2.5,null,true,"x"],"b":{"c":{}},"d":18446744073709551615}"#;
        let kept: BoundedValue = serde_json::from_str(text).unwrap();
        assert_eq!(kept.0, Some(serde_json::from_str(text).unwrap()));
        let endless = json!({ "a": vec![0; MAX_VALUES as usize], "b": 1 }).to_string();
        assert_eq!(serde_json::from_str::<BoundedValue>(&endless).unwrap(), BoundedValue(None));
        let many: String = (0..=MAX_VALUES).map(|n| format!("\"{n}\":0,")).collect();
        assert_eq!(serde_json::from_str::<BoundedValue>(&format!("{{{many}\"z\":{{}}}}")).unwrap(), BoundedValue(None));
    }

    #[test]
    fn half_a_value_and_one_that_is_too_deep_are_errors() {
        assert!(serde_json::from_str::<BoundedValue>("[1,").is_err());
        assert!(serde_json::from_str::<BoundedValue>(&"[".repeat(100_000)).is_err());
    }
}
