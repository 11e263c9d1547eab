//! The address of the list of jobs: what selects and orders it.

use super::failure::PageFailure;
use crate::control::transport::protocol::{BrowseCursor, BrowseFilter, BrowseQuery, BrowseSort};
use crate::domain::names::{JobId, SourceName};
use crate::domain::remote_url::percent_encode;
use crate::domain::stage::StageKind;
use crate::web::server::Api;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

/// The jobs of a page.
const PER_PAGE: usize = 50;

/// What the address of the list says.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JobsAddress {
    /// Names of stages, separated by commas.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stage: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub source: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fault: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    #[serde(skip_serializing_if = "is_not")]
    pub incomplete: bool,
    #[serde(skip_serializing_if = "is_not")]
    pub suspect: bool,
    #[serde(skip_serializing_if = "is_not")]
    pub unacknowledged: bool,
    /// Dates such as `2026-11-21`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub since: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub before: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sort: String,
    /// `asc` or `desc`; the newest and largest come first without it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub order: String,
    /// The last job of the page before, as [`written_cursor`] writes it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub after: String,
    #[serde(skip_serializing)]
    pub note: Option<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_not(is: &bool) -> bool {
    !is
}

impl JobsAddress {
    /// Returns the address of the list, relative to the first page.
    pub fn url(&self) -> String {
        let query = serde_json::to_value(self).unwrap_or_default();
        let pairs = query.as_object().into_iter().flatten();
        let pairs: Vec<String> = pairs
            .map(|(name, value)| {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                format!("{name}={}", encoded(&text))
            })
            .collect();
        if pairs.is_empty() { "jobs".to_owned() } else { format!("jobs?{}", pairs.join("&")) }
    }

    /// Returns the address of the list from its start, after a change of what is wanted.
    pub fn with(&self, change: impl FnOnce(&mut Self)) -> String {
        let mut other = Self { after: String::new(), note: None, ..self.clone() };
        change(&mut other);
        other.url()
    }

    pub fn filter(&self, api: &Api) -> Result<BrowseFilter, PageFailure> {
        let wrong = |words: String| PageFailure::new(StatusCode::UNPROCESSABLE_ENTITY, words);
        let stage = |name: &str| StageKind::parse(name).ok_or_else(|| wrong(format!("{name:?} is no stage of a job")));
        let names = self.stage.split(',').map(str::trim).filter(|name| !name.is_empty());
        let day = |text: &str| match text {
            "" => Ok(None),
            text => {
                api.zone.start_of(text).map(Some).ok_or_else(|| wrong(format!("{text:?} is no date like 2026-11-21")))
            }
        };
        let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
        Ok(BrowseFilter {
            stages: names.map(stage).collect::<Result<_, _>>()?,
            source: some(&self.source).map(SourceName::new),
            fault: some(&self.fault),
            reason: some(&self.reason),
            text: self.text.clone(),
            incomplete: self.incomplete,
            suspect: self.suspect,
            unacknowledged: self.unacknowledged,
            since: day(&self.since)?,
            before: day(&self.before)?,
        })
    }

    fn sort(&self) -> Result<(BrowseSort, bool), PageFailure> {
        let sort = SORTS.into_iter().find(|(name, ..)| *name == self.sort).map(|(_, sort, _)| sort);
        let sort = if self.sort.is_empty() { Some(BrowseSort::Number) } else { sort };
        let wrong =
            || PageFailure::new(StatusCode::UNPROCESSABLE_ENTITY, format!("{:?} is no order of jobs", self.sort));
        let sort = sort.ok_or_else(wrong)?;
        let descending = match self.order.as_str() {
            "asc" => false,
            "desc" => true,
            _ => sort != BrowseSort::Name,
        };
        Ok((sort, descending))
    }

    pub fn query(&self, api: &Api) -> Result<BrowseQuery, PageFailure> {
        let (sort, descending) = self.sort()?;
        Ok(BrowseQuery { filter: self.filter(api)?, sort, descending, after: cursor(&self.after), limit: PER_PAGE })
    }
}

/// The columns by which the list may be ordered.
pub const SORTS: [(&str, BrowseSort, &str); 5] = [
    ("number", BrowseSort::Number, "Job"),
    ("name", BrowseSort::Name, "Recording"),
    ("since", BrowseSort::Since, "Since"),
    ("length", BrowseSort::Length, "Length"),
    ("cost", BrowseSort::Cost, "Billed"),
];

/// Writes where a page begins: the number of the last job, what it is ordered by, and its name.
pub fn written_cursor(cursor: &BrowseCursor) -> String {
    format!("{}:{}:{}", cursor.job, cursor.number, cursor.name)
}

/// Reads it again; what is no such text begins at the start.
fn cursor(text: &str) -> Option<BrowseCursor> {
    let mut parts = text.splitn(3, ':');
    let (job, number, name) = (parts.next()?, parts.next()?, parts.next()?);
    Some(BrowseCursor { job: JobId(job.parse().ok()?), number: number.parse().ok()?, name: name.to_owned() })
}

/// Encodes a value of an address.
pub fn encoded(text: &str) -> String {
    percent_encode(text.as_bytes(), b",:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_what_is_not_the_default_and_is_read_again() {
        assert_eq!(JobsAddress::default().url(), "jobs");
        let address = JobsAddress {
            text: "a b&c=ä".to_owned(),
            suspect: true,
            after: "1:2:x".to_owned(),
            ..JobsAddress::default()
        };
        assert_eq!(address.url(), "jobs?after=1:2:x&suspect=true&text=a%20b%26c%3D%C3%A4");
        assert_eq!(
            address.with(|to| to.fault = "refused".to_owned()),
            "jobs?fault=refused&suspect=true&text=a%20b%26c%3D%C3%A4"
        );
    }

    #[test]
    fn where_a_page_begins_is_read_as_it_was_written() {
        let begin = BrowseCursor { job: JobId(7), number: -3, name: "a:b/ä".to_owned() };
        assert_eq!(cursor(&written_cursor(&begin)), Some(begin));
        for nonsense in ["", "7", "7:x:", "a:1:b", "1:2"] {
            assert_eq!(cursor(nonsense), None, "{nonsense}");
        }
    }
}
