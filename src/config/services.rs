//! `[service]` and `[services.NAME]`.

use super::meant::{Hosted, Limits, Poll, Service, Source, Terms, Upload};
use super::problem::Problem;
use super::reading::Reader;
use super::values::{base_url, header, or, ordered, plain_http};
use super::written::{Refusal, Section, Spot, duration, refusal, some_time_in, text, whole, wrong_type};
use crate::domain::names::ServiceName;
use reqwest::Url;
use reqwest::header::HeaderName;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::de::DeValue;

impl Reader<'_> {
    /// `[service]` is `[services.default]`.
    pub(super) fn services(&self, file: &Section<'_>) -> BTreeMap<ServiceName, Service> {
        let mut services = BTreeMap::new();
        let alone = file.section("service");
        services.insert(ServiceName::new(ServiceName::DEFAULT), self.service(&alone));
        for (name, section) in file.named("services") {
            if let Err(refusal) = service_name(&name.value) {
                file.refuse(&format!("services.{}", name.value), name.span.clone(), refusal);
            }
            if name.value == ServiceName::DEFAULT && alone.is_there() {
                let problem = Problem::at(name.span, "the service `default` is given twice");
                file.tell(problem.also(alone.span.clone(), "this is it too").mend("give one of them another name"));
                continue;
            }
            let service = self.service(&section);
            twins(file, &services, &name, &service);
            services.insert(ServiceName::new(name.value), service);
        }
        services
    }

    fn service(&self, section: &Section<'_>) -> Service {
        let url = section.get("url", service_url);
        let key = section.get("key", |value| self.secret(value));
        let key_header = section.get("key_header", header);
        let plain_http = plain_http(section, "url", url.as_ref());
        if !section.table().is_some_and(|table| table.contains_key("url")) {
            needs_url(section, "key", key.map(|key| key.span));
            needs_url(section, "key_header", key_header.map(|header| header.span));
            needs_url(section, "ca", section.get("ca", text).map(|ca| ca.span));
            return Service::Embedded(terms(section, Terms::EMBEDDED));
        }
        let authorities = self.authorities(section);
        let terms = terms(section, Terms::HOSTED);
        if !section.table().is_some_and(|table| table.contains_key("key")) {
            let what = format!("`{}` is missing: a service elsewhere needs one", section.name("key"));
            section.tell(Problem::at(section.span.clone(), what).mend("key = \"env:SCRIBED_KEY\""));
        }
        match (url, key) {
            (Some(url), Some(key)) => {
                let key_header = or(key_header, HeaderName::from_static("x-service-key"));
                Service::Hosted(Hosted { url: url.value, key: key.value, key_header, authorities, plain_http, terms })
            }
            // Told above: this value is not used.
            _ => Service::Embedded(terms),
        }
    }
}

/// A name that may stand in a file's name.
fn service_name(name: &str) -> Result<(), Refusal> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    match name.len() {
        1..=40 if name.chars().all(plain) => Ok(()),
        _ => Err(refusal("is no name for a service", "use up to 40 letters, digits, `-` and `_`")),
    }
}

/// Two names for one account would share no limits, and buy the same content twice.
fn twins(file: &Section<'_>, earlier: &BTreeMap<ServiceName, Service>, name: &Spot<String>, service: &Service) {
    let Service::Hosted(hosted) = service else { return };
    let same = |other: &Service| match other {
        // Secrets that were not fetched say nothing.
        Service::Hosted(other) => {
            other.url == hosted.url && !hosted.key.expose().is_empty() && other.key.expose() == hosted.key.expose()
        }
        Service::Embedded(_) => false,
    };
    if let Some((first, _)) = earlier.iter().find(|(_, other)| same(other)) {
        let what = format!("the services `{first}` and `{}` are one: the same address and the same key", name.value);
        let mend = "limits and purchases are kept for each name: use one of them for all its sources";
        file.tell(Problem::at(name.span.clone(), what).mend(mend));
    }
}

/// What is bound to a service that nobody names any more waits until it is named again: it is not asked of the
/// embedded one, which would not know it.
pub(super) fn drop_unwanted(file: &Section<'_>, sources: &[Source], services: &mut BTreeMap<ServiceName, Service>) {
    let default = ServiceName::new(ServiceName::DEFAULT);
    let is_written =
        file.section("service").is_there() || file.section("services").section(default.as_str()).is_there();
    let is_wanted = sources.iter().any(|source| source.service == default);
    if !is_written && !is_wanted && services.len() > 1 {
        services.remove(&default);
    }
}

fn needs_url(section: &Section<'_>, key: &str, span: Option<Range<usize>>) {
    if let Some(span) = span {
        section.refuse(
            key,
            span,
            refusal("is for a service elsewhere, and there is no `url`", "add url = \"https://…\", or take it out"),
        );
    }
}

fn terms(section: &Section<'_>, default: Terms) -> Terms {
    Terms {
        limits: limits(&section.section("limits"), default.limits),
        poll: poll(&section.section("poll"), default.poll),
        lag: or(section.get("lag", duration), default.lag),
        walk_limit: or(section.get("walk_limit", whole(1)), default.walk_limit),
        retention: or(section.get("retention", some_time_in("d")), default.retention),
        upload: or(section.get("upload", upload), default.upload),
    }
}

fn limits(section: &Section<'_>, default: Limits) -> Limits {
    let count = |key, default| section.get(key, whole(1)).map_or(default, |spot| spot.value as usize);
    Limits {
        uploads: count("uploads", default.uploads),
        running: count("running", default.running),
        requests_per_second: or(section.get("requests_per_second", whole(1)), default.requests_per_second),
    }
}

fn poll(section: &Section<'_>, default: Poll) -> Poll {
    let (min, max) = ordered(section, ("min", default.min), ("max", default.max));
    Poll { min, max, give_up: or(section.get("give_up", some_time_in("h")), default.give_up) }
}

/// `[service]` is `[services.default]`.
pub(super) fn prices(file: &Section<'_>) -> BTreeMap<ServiceName, f64> {
    let alone = (ServiceName::new(ServiceName::DEFAULT), file.section("service"));
    let named = file.named("services").into_iter().map(|(name, section)| (ServiceName::new(name.value), section));
    let price = |(name, section): (ServiceName, Section<'_>)| Some((name, section.get("price_per_hour", price)?.value));
    named.chain([alone]).filter_map(price).collect()
}

fn price(value: &DeValue<'_>) -> Result<f64, Refusal> {
    let mend = "write a plain number like 0.61, in whatever money you pay in";
    let written = match value {
        DeValue::Float(number) => number.as_str().replace('_', ""),
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().replace('_', ""),
        DeValue::String(text) if text.trim().replace(',', ".").parse::<f64>().is_ok_and(|price| price >= 0.0) => {
            let right = text.trim().replace(',', ".");
            return Err(wrong_type("a number", value, &format!("write {right}, without quotes")));
        }
        other => return Err(wrong_type("a number", other, mend)),
    };
    let number = written.parse::<f64>().ok().filter(|price| price.is_finite() && *price >= 0.0);
    number.ok_or_else(|| refusal("must be a number of 0 or more", mend))
}

fn service_url(value: &DeValue<'_>) -> Result<Url, Refusal> {
    base_url(value, "https://stt.example.org", "put the key into `key`")
}

fn upload(value: &DeValue<'_>) -> Result<Upload, Refusal> {
    match text(value)?.as_str() {
        "original" => Ok(Upload::Original),
        "audio" => Ok(Upload::Audio),
        _ => Err(refusal("must be \"original\" or \"audio\"", "\"audio\" sends the sound track of a video alone")),
    }
}
