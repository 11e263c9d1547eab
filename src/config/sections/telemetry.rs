//! Reads `[telemetry]`: where traces are sent.

use crate::config::load::read::Reader;
use crate::config::load::toml_reader::{Section, ValueError, refusal, wrong_type};
use crate::config::load::values::base_url;
use crate::config::model::{TraceCollector, TraceHeader};
use crate::wire::address::is_unencrypted_remote;
use reqwest::Url;
use reqwest::header::{CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, TRANSFER_ENCODING};
use toml::de::DeValue;

/// The headers that each request has anyway.
const OWN: [HeaderName; 5] = [CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, TRANSFER_ENCODING];

const EXAMPLE: &str = "write headers = { authorization = \"env:NAME\" }; the value is read from there";

impl Reader<'_> {
    /// Returns the collector; `None` if none is configured.
    pub(crate) fn collector(&self, section: &Section<'_>) -> Option<TraceCollector> {
        let url = section.get("otlp", |value| {
            base_url(value, "http://127.0.0.1:4318", "write the password into `headers`, as the collector wants it")
        });
        let headers = section.get("headers", |value| self.headers(value));
        let authorities = self.authorities(section);
        let is_in_file = |key: &str| section.table().is_some_and(|table| table.contains_key(key));
        if !is_in_file("otlp") && (is_in_file("headers") || is_in_file("ca")) {
            section.report_missing("otlp = \"http://127.0.0.1:4318\"");
        }
        let url = url?.value;
        if let Some(headers) = headers.as_ref().filter(|headers| !headers.value.is_empty() && is_readable(&url)) {
            let why = "must not be sent by plain http to another machine: others on the network could read them";
            let fix = "write https in `otlp`, or send the traces to a collector on this machine, which adds them";
            section.report_value("headers", headers.span.clone(), refusal(why, fix));
        }
        Some(TraceCollector { url, headers: headers.map(|spot| spot.value).unwrap_or_default(), authorities })
    }

    fn headers(&self, value: &DeValue<'_>) -> Result<Vec<TraceHeader>, ValueError> {
        let table = value.as_table().ok_or_else(|| wrong_type("a table", value, EXAMPLE))?;
        let mut headers: Vec<TraceHeader> = Vec::with_capacity(table.len());
        for (written, place) in table {
            let written = written.get_ref();
            let name = HeaderName::from_bytes(written.as_bytes())
                .map_err(|_| refusal(format!("has {written:?}, which is no name of a header"), EXAMPLE))?;
            if OWN.contains(&name) || headers.iter().any(|header| header.name == name) {
                let fix = "remove it";
                return Err(refusal(format!("has `{name}`, which each request has once already"), fix));
            }
            headers.push(TraceHeader { name, value: self.header_value(place.get_ref())? });
        }
        Ok(headers)
    }
}

fn is_readable(url: &Url) -> bool {
    is_unencrypted_remote(url.scheme(), url.host_str().unwrap_or_default())
}
