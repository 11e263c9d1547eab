//! Lists: their query and their pages (interface, "Query parameters of both list endpoints", "Page").

use crate::domain::names::Timestamp;
use crate::wire::record::Status;
use crate::wire::timestamps;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One page of a list.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct RecordPage<T> {
    /// URL of the first page.
    #[serde(default)]
    pub first: String,
    /// URL of this page.
    #[serde(default)]
    pub current: String,
    /// URL of the next page; null on the last page.
    #[serde(default)]
    pub next: Option<String>,
    /// The items of this page, newest first. Empty if the list has no item at this offset.
    // No default: an answer without `items` must not be taken for an empty page.
    pub items: Vec<T>,
}

/// The number of items on a page if the query names none.
pub const DEFAULT_LIMIT: u32 = 20;

/// The largest number of items on a page. A larger `limit` is refused, not reduced: a client that advances by its own
/// limit would miss items.
pub const MAX_LIMIT: u32 = 1000;

/// The query of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListQuery {
    /// The index of the first item, from 0.
    pub offset: u64,
    /// At least 1; at most [`MAX_LIMIT`] in a query that was received.
    pub limit: u32,
    /// Only items of this UTC day.
    pub date: Option<Timestamp>,
    /// Only items created before this.
    pub before_date: Option<Timestamp>,
    /// Only items created after this.
    pub after_date: Option<Timestamp>,
    /// Only items with one of these; empty for all.
    pub status: Vec<Status>,
    /// Only items whose metadata contains all of this.
    pub custom_metadata: Map<String, Value>,
}

impl Default for ListQuery {
    fn default() -> Self {
        Self {
            offset: 0,
            limit: DEFAULT_LIMIT,
            date: None,
            before_date: None,
            after_date: None,
            status: Vec::new(),
            custom_metadata: Map::new(),
        }
    }
}

impl ListQuery {
    /// Returns the names and values, not yet percent-encoded. `status` is repeated for each value, `custom_metadata` is
    /// JSON.
    pub fn to_query_pairs(&self) -> Vec<(String, String)> {
        let mut pairs =
            vec![("offset".to_owned(), self.offset.to_string()), ("limit".to_owned(), self.limit.to_string())];
        let dates = [("date", self.date), ("before_date", self.before_date), ("after_date", self.after_date)];
        for (name, date) in dates {
            pairs.extend(date.map(|date| (name.to_owned(), timestamps::format(date))));
        }
        pairs.extend(self.status.iter().map(|s| ("status".to_owned(), s.as_str().to_owned())));
        if !self.custom_metadata.is_empty() {
            let json = Value::Object(self.custom_metadata.clone()).to_string();
            pairs.push(("custom_metadata".to_owned(), json));
        }
        pairs
    }

    /// Reads decoded names and values. Empty values count as absent, and unknown names are ignored. `custom_metadata`
    /// may also have the form `custom_metadata[key]=value`.
    ///
    /// # Errors
    /// What is wrong with each invalid value.
    pub fn read<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Result<Self, Vec<String>> {
        let mut query = Self::default();
        let mut wrong = Vec::new();
        for (name, value) in pairs.filter(|(_, value)| !value.is_empty()) {
            if let Err(must) = query.set(name, value) {
                let name: String = name.chars().take(MAX_NAME_CHARS).collect();
                wrong.push(format!("{name} must {must}"));
            }
        }
        if wrong.is_empty() { Ok(query) } else { Err(wrong) }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), &'static str> {
        match name {
            "offset" => self.offset = parse_offset(value).ok_or("not be less than 0")?,
            "limit" => {
                self.limit = value.parse().ok().filter(|n| (1..=MAX_LIMIT).contains(n)).ok_or(LIMIT_REQUIREMENT)?;
            }
            "date" => self.date = Some(parse_date(value)?),
            "before_date" => self.before_date = Some(parse_date(value)?),
            "after_date" => self.after_date = Some(parse_date(value)?),
            "status" | "status[]" => self.status.push(parse_status(value)?),
            "custom_metadata" => {
                let map: Map<String, Value> = serde_json::from_str(value).map_err(|_| "be a JSON object")?;
                self.custom_metadata.extend(map);
            }
            _ => {
                let key = name.strip_prefix("custom_metadata[").and_then(|k| k.strip_suffix(']'));
                if key.is_some_and(|key| key.matches("][").count() >= MAX_NESTING) {
                    return Err("not lie deeper than 32 objects");
                }
                if let Some(key) = key {
                    insert_nested(&mut self.custom_metadata, key, value);
                }
            }
        }
        Ok(())
    }

    /// Whether an item with these properties is in this list, on any page.
    pub fn matches(&self, created: Timestamp, status: &Status, metadata: Option<&Value>) -> bool {
        const DAY_MS: i64 = 86_400_000;
        let on_day = |day: Timestamp| created.0.div_euclid(DAY_MS) == day.0.div_euclid(DAY_MS);
        self.date.is_none_or(on_day)
            && self.before_date.is_none_or(|before| created < before)
            && self.after_date.is_none_or(|after| created > after)
            && (self.status.is_empty() || self.status.contains(status))
            && self.custom_metadata.iter().all(|(key, wanted)| {
                metadata.and_then(|all| all.get(key)).is_some_and(|value| matches_value(value, wanted))
            })
    }
}

/// Inserts a value under the key `a`, or for `a][b` under `b` of the object `a`.
fn insert_nested(map: &mut Map<String, Value>, key: &str, value: &str) {
    let Some((outer, inner)) = key.split_once("][") else {
        map.insert(key.to_owned(), Value::from(value));
        return;
    };
    let below = map.entry(outer).or_insert_with(|| Value::Object(Map::new()));
    if let Value::Object(below) = below {
        insert_nested(below, inner, value);
    }
}

/// Whether a stored value satisfies a wanted one: a number also matches its text, and an object only has to contain the
/// wanted fields.
fn matches_value(value: &Value, wanted: &Value) -> bool {
    if let (Value::Object(stored), Value::Object(wanted)) = (value, wanted) {
        return wanted.iter().all(|(key, wanted)| stored.get(key).is_some_and(|value| matches_value(value, wanted)));
    }
    let text = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
    value == wanted || (!value.is_object() && !value.is_array() && text(value) == text(wanted))
}

/// The deepest nesting of objects in a name. Each level is a recursive call: some ten thousand would overflow the
/// stack.
const MAX_NESTING: usize = 32;

/// How many characters of a name an error message repeats.
const MAX_NAME_CHARS: usize = 100;

const LIMIT_REQUIREMENT: &str = "not be less than 1 and not be greater than 1000";

/// Parses an offset. One that is too large for the type is past the end of every list.
fn parse_offset(value: &str) -> Option<u64> {
    let is_whole = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    is_whole.then(|| value.parse().unwrap_or(u64::MAX))
}

fn parse_date(value: &str) -> Result<Timestamp, &'static str> {
    timestamps::parse(value).ok_or("be a valid ISO 8601 date string")
}

fn parse_status(value: &str) -> Result<Status, &'static str> {
    match Status::parse(value) {
        Status::Other(_) => Err("be one of the following values: queued, processing, done, error"),
        known => Ok(known),
    }
}
