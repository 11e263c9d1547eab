//! Reads `[service]` and `[services.NAME]`.

use crate::backpressure::poll_schedule::Poll;
use crate::config::load::diagnostics::Problem;
use crate::config::load::read::Reader;
use crate::config::load::toml_reader::{
    Section, Spot, ValueError, duration, integer_from, refusal, size, some_time_in, text, wrong_type,
};
use crate::config::load::values::{base_url, check_order, header, or, plain_http};
use crate::config::model::{Hosted, ServiceConfig, ServiceLimits, ServiceTerms, Source, UploadMode};
use crate::domain::names::ServiceName;
use crate::domain::split::{RecordingLimits, SHORTEST_PART_MS};
use reqwest::Url;
use reqwest::header::HeaderName;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;
use toml::de::DeValue;

impl Reader<'_> {
    /// `[service]` stands for `[services.default]`.
    pub(crate) fn services(&self, file: &Section<'_>) -> BTreeMap<ServiceName, ServiceConfig> {
        let mut services = BTreeMap::new();
        let alone = file.section("service");
        services.insert(ServiceName::new(ServiceName::DEFAULT), self.service(&alone));
        for (name, section) in file.named("services") {
            if let Err(refusal) = service_name(&name.value) {
                file.report_value(&format!("services.{}", name.value), name.span.clone(), refusal);
            }
            if name.value == ServiceName::DEFAULT && alone.exists() {
                let problem = Problem::at(name.span, "the service `default` is given twice");
                file.report(problem.also(alone.span.clone(), "and again here").fix("give one of them another name"));
                continue;
            }
            let service = self.service(&section);
            duplicates(file, &services, &name, &service);
            services.insert(ServiceName::new(name.value), service);
        }
        services
    }

    fn service(&self, section: &Section<'_>) -> ServiceConfig {
        let url = section.get("url", service_url);
        let key = section.get("key", |value| self.secret(value));
        let key_header = section.get("key_header", header);
        let plain_http = plain_http(section, "url", url.as_ref());
        if !section.table().is_some_and(|table| table.contains_key("url")) {
            needs_url(section, "key", key.map(|key| key.span));
            needs_url(section, "key_header", key_header.map(|header| header.span));
            needs_url(section, "ca", section.get("ca", text).map(|ca| ca.span));
            return ServiceConfig::Embedded(terms(section, ServiceTerms::EMBEDDED));
        }
        let authorities = self.authorities(section);
        let terms = terms(section, ServiceTerms::HOSTED);
        if !section.table().is_some_and(|table| table.contains_key("key")) {
            let what = format!("`{}` is missing: a hosted service needs one", section.name("key"));
            section.report(Problem::at(section.span.clone(), what).fix("key = \"env:SCRIBED_KEY\""));
        }
        match (url, key) {
            (Some(url), Some(key)) => {
                let key_header = or(key_header, HeaderName::from_static("x-service-key"));
                ServiceConfig::Hosted(Hosted {
                    url: url.value,
                    key: key.value,
                    key_header,
                    authorities,
                    plain_http,
                    terms,
                })
            }
            // Reported above: this value is not used.
            _ => ServiceConfig::Embedded(terms),
        }
    }
}

/// Checks a name, which is used in file names.
fn service_name(name: &str) -> Result<(), ValueError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    match name.len() {
        1..=40 if name.chars().all(plain) => Ok(()),
        _ => Err(refusal("is not a valid name for a service", "use up to 40 letters, digits, `-` and `_`")),
    }
}

/// Reports two names for one account: they would have separate limits, and the same content would be bought twice.
fn duplicates(
    file: &Section<'_>,
    earlier: &BTreeMap<ServiceName, ServiceConfig>,
    name: &Spot<String>,
    service: &ServiceConfig,
) {
    let ServiceConfig::Hosted(hosted) = service else { return };
    let same = |other: &ServiceConfig| match other {
        // Secrets that were not read cannot be compared.
        ServiceConfig::Hosted(other) => {
            other.url == hosted.url && !hosted.key.expose().is_empty() && other.key.expose() == hosted.key.expose()
        }
        ServiceConfig::Embedded(_) => false,
    };
    if let Some((first, _)) = earlier.iter().find(|(_, other)| same(other)) {
        let what = format!("the services `{first}` and `{}` are the same: same address and same key", name.value);
        let fix = "limits and purchases are counted for each name: use one name for all sources";
        file.report(Problem::at(name.span.clone(), what).fix(fix));
    }
}

/// Removes the default service if it is not configured and no source uses it. Jobs of a service that is no longer
/// configured wait until it is again: the embedded service would not know them.
pub(crate) fn drop_unwanted(
    file: &Section<'_>,
    sources: &[Source],
    services: &mut BTreeMap<ServiceName, ServiceConfig>,
) {
    let default = ServiceName::new(ServiceName::DEFAULT);
    let is_written = file.section("service").exists() || file.section("services").section(default.as_str()).exists();
    let is_wanted = sources.iter().any(|source| source.service == default);
    if !is_written && !is_wanted && services.len() > 1 {
        services.remove(&default);
    }
}

fn needs_url(section: &Section<'_>, key: &str, span: Option<Range<usize>>) {
    if let Some(span) = span {
        section.report_value(
            key,
            span,
            refusal("is for a hosted service, and there is no `url`", "add url = \"https://…\", or remove it"),
        );
    }
}

fn terms(section: &Section<'_>, default: ServiceTerms) -> ServiceTerms {
    ServiceTerms {
        limits: limits(&section.section("limits"), default.limits),
        poll: poll(&section.section("poll"), default.poll),
        lag: or(section.get("lag", duration), default.lag),
        list_scan_limit: or(section.get("walk_limit", integer_from(1)), default.list_scan_limit),
        retention: or(section.get("retention", some_time_in("d")), default.retention),
        upload: or(section.get("upload", upload), default.upload),
    }
}

fn limits(section: &Section<'_>, default: ServiceLimits) -> ServiceLimits {
    let count = |key, default| section.get(key, integer_from(1)).map_or(default, |spot| spot.value as usize);
    ServiceLimits {
        uploads: count("uploads", default.uploads),
        running: count("running", default.running),
        requests_per_second: or(section.get("requests_per_second", integer_from(1)), default.requests_per_second),
        recording: RecordingLimits {
            duration: section.get("duration", longest_recording).map(|spot| spot.value).or(default.recording.duration),
            size: section.get("size", size).map(|spot| spot.value).or(default.recording.size),
        },
    }
}

/// Shorter parts than this are not made.
fn longest_recording(value: &DeValue<'_>) -> Result<Duration, ValueError> {
    let least = Duration::from_millis(SHORTEST_PART_MS);
    match some_time_in("m")(value)? {
        short if short < least => Err(refusal("must be 10 seconds or more", "write \"135m\", as the service says")),
        time => Ok(time),
    }
}

fn poll(section: &Section<'_>, default: Poll) -> Poll {
    let (min, max) = check_order(section, ("min", default.min), ("max", default.max));
    Poll { min, max, give_up: or(section.get("give_up", some_time_in("h")), default.give_up) }
}

/// `[service]` stands for `[services.default]`.
pub(crate) fn prices(file: &Section<'_>) -> BTreeMap<ServiceName, f64> {
    let alone = (ServiceName::new(ServiceName::DEFAULT), file.section("service"));
    let named = file.named("services").into_iter().map(|(name, section)| (ServiceName::new(name.value), section));
    let price = |(name, section): (ServiceName, Section<'_>)| Some((name, section.get("price_per_hour", price)?.value));
    named.chain([alone]).filter_map(price).collect()
}

fn price(value: &DeValue<'_>) -> Result<f64, ValueError> {
    let fix = "write a plain number like 0.61, in the currency that you pay in";
    let written = match value {
        DeValue::Float(number) => number.as_str().replace('_', ""),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().replace('_', ""),
        DeValue::String(text) if text.trim().replace(',', ".").parse::<f64>().is_ok_and(|price| price >= 0.0) => {
            let right = text.trim().replace(',', ".");
            return Err(wrong_type("a number", value, &format!("write {right}, without quotes")));
        }
        other => return Err(wrong_type("a number", other, fix)),
    };
    let number = written.parse::<f64>().ok().filter(|price| price.is_finite() && *price >= 0.0);
    number.ok_or_else(|| refusal("must be a number of 0 or more", fix))
}

fn service_url(value: &DeValue<'_>) -> Result<Url, ValueError> {
    base_url(value, "https://stt.example.org", "write the key into `key` instead")
}

fn upload(value: &DeValue<'_>) -> Result<UploadMode, ValueError> {
    match text(value)?.as_str() {
        "original" => Ok(UploadMode::Original),
        "audio" => Ok(UploadMode::Audio),
        _ => Err(refusal("must be \"original\" or \"audio\"", "\"audio\" sends only the audio track of a video")),
    }
}
