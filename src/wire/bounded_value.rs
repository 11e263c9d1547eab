//! What a service sends besides what was said: kept while it is of modest size. A value that holds more would take
//! many times its length in memory, so it counts as absent; nothing that was paid for stands there.

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};
use std::cell::Cell;
use std::fmt;

/// So many values, those within others included, are kept.
const MAX_VALUES: u32 = 100_000;

/// A JSON value; `None` where it holds too many others.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BoundedValue(pub Option<Value>);

impl BoundedValue {
    /// A field of an object.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.as_ref()?.get(key)
    }
}

impl<'de> Deserialize<'de> for BoundedValue {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        One(&Cell::new(MAX_VALUES)).deserialize(from).map(Self)
    }
}

/// One value, and how many more may come.
struct One<'b>(&'b Cell<u32>);

impl One<'_> {
    fn take_one(&self, value: Value) -> Option<Value> {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        (left > 0).then_some(value)
    }

    fn is_exhausted(&self) -> bool {
        self.0.get() == 0
    }
}

impl<'de> DeserializeSeed<'de> for One<'_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for One<'_> {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(self.take_one(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(self.take_one(Value::Bool(value)))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(self.take_one(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(self.take_one(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(self.take_one(Number::from_f64(value).map_or(Value::Null, Value::Number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(self.take_one(value.into()))
    }

    fn visit_string<E>(self, value: String) -> Result<Self::Value, E> {
        Ok(self.take_one(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while !self.is_exhausted() {
            match seq.next_element_seed(One(self.0))? {
                Some(element) => list.extend(element),
                None => return Ok(self.take_one(Value::Array(list))),
            }
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut object = Map::new();
        while !self.is_exhausted() {
            match map.next_key::<String>()? {
                Some(key) => drop(map.next_value_seed(One(self.0))?.map(|value| object.insert(key, value))),
                None => return Ok(self.take_one(Value::Object(object))),
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
