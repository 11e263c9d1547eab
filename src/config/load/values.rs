//! Values of several tables: addresses, ordered durations, booleans.

use super::quantities::quoted;
use super::toml_reader::{Section, Spot, ValueError, refusal, some_time_in, text, wrong_type};
use crate::wire::address::{PlainHttp, is_unencrypted_remote};
use crate::wire::network::{Network, NetworkError};
use reqwest::Url;
use reqwest::header::HeaderName;
use std::net::SocketAddr;
use std::time::Duration;
use toml::de::DeValue;

pub(crate) fn or<T>(spot: Option<Spot<T>>, default: T) -> T {
    spot.map_or(default, |spot| spot.value)
}

pub(crate) fn values<T>(list: Vec<Spot<T>>) -> Vec<T> {
    list.into_iter().map(|spot| spot.value).collect()
}

/// Reads two durations and reports if the first is longer than the second.
pub(crate) fn check_order(
    section: &Section<'_>,
    less: (&str, Duration),
    more: (&str, Duration),
) -> (Duration, Duration) {
    let [low, high] = [less, more].map(|(key, _)| section.get(key, some_time_in("s")));
    let place = low.as_ref().or(high.as_ref()).map(|spot| spot.span.clone());
    let (low, high) = (or(low, less.1), or(high, more.1));
    if let Some(span) = place.filter(|_| low > high) {
        let [shown_low, shown_high] = [low, high].map(humantime::format_duration);
        let why = format!("is longer than `{}`: {shown_low} against {shown_high}", section.name(more.0));
        section.report_value(less.0, span, refusal(why, format!("make `{}` the longer one", more.0)));
    }
    (low, high)
}

pub(crate) fn boolean(value: &DeValue<'_>) -> Result<bool, ValueError> {
    let meant = value.as_str().and_then(|text| match text.trim().to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some("write true, without quotes"),
        "false" | "no" | "off" | "0" => Some("write false, without quotes"),
        _ => None,
    });
    value
        .as_bool()
        .ok_or_else(|| wrong_type("true or false", value, meant.unwrap_or("write true or false, without quotes")))
}

/// Reads an address or a network of addresses.
pub(crate) fn network(value: &DeValue<'_>) -> Result<Network, ValueError> {
    let fix = "write it like \"127.0.0.1\" or \"10.0.0.0/8\"";
    text(value)?.parse().map_err(|error: NetworkError| refusal(error.to_string(), fix))
}

pub(crate) fn header(value: &DeValue<'_>) -> Result<HeaderName, ValueError> {
    let fix = "write it like \"x-service-key\"";
    text(value)?.parse().map_err(|_| refusal("must be the name of a header", fix))
}

pub(crate) fn address(value: &DeValue<'_>) -> Result<SocketAddr, ValueError> {
    let written = text(value)?;
    written.parse().map_err(|_| {
        let why = format!("must be an IP address and a port, found {}", quoted(&written));
        refusal(why, listener_advice(&written, 8472))
    })
}

/// Returns the advice for a listener's address. `port` is the default.
pub(crate) fn listener_advice(written: &str, port: u16) -> String {
    let (host, number) = written.rsplit_once(':').unwrap_or((written, ""));
    let (host, number) =
        if host.bytes().all(|byte| byte.is_ascii_digit()) && number.is_empty() { ("", host) } else { (host, number) };
    let port = number.parse().ok().filter(|number| *number > 0).unwrap_or(port);
    match host {
        "" | "localhost" => {
            format!("write \"127.0.0.1:{port}\" for this machine only, \"0.0.0.0:{port}\" to accept other machines too")
        }
        _ if host.parse::<std::net::IpAddr>().is_ok() => format!("write \"{host}:{port}\""),
        _ => format!("write it like \"127.0.0.1:{port}\" or \"[::1]:{port}\""),
    }
}

pub(crate) fn web_url(value: &DeValue<'_>, fix: &str) -> Result<Url, ValueError> {
    let written = text(value)?;
    let parsed = Url::parse(&written);
    match &parsed {
        Ok(url) if matches!(url.scheme(), "http" | "https") => parsed.map_err(|error| refusal(error.to_string(), fix)),
        // A host without its scheme; it cannot contain a user or a password.
        _ if is_host(&written) => Err(refusal(
            format!("must be an http or https URL, found \"{written}\""),
            format!("write \"https://{written}\""),
        )),
        Err(error) => Err(refusal(format!("must be a URL: {error}"), fix)),
        Ok(_) => Err(refusal("must be an http or https URL", fix)),
    }
}

fn is_host(written: &str) -> bool {
    let host = written.split(['/', ':']).next().unwrap_or_default();
    let is_plain = written.chars().all(|c| c.is_ascii_alphanumeric() || ".-:/".contains(c));
    is_plain && !written.contains("//") && (host.contains('.') || host == "localhost")
}

/// Reads a URL to which paths are appended. `secret` says where a user or password belongs instead.
pub(crate) fn base_url(value: &DeValue<'_>, example: &str, secret: &str) -> Result<Url, ValueError> {
    let fix = format!("write it like \"{example}\"");
    let url = reject_user(web_url(value, &fix)?, secret)?;
    if url.query().is_some() || url.fragment().is_some() {
        return Err(refusal("must not have a query or a fragment", fix));
    }
    Ok(url)
}

/// Refuses a user or password in a URL: it would appear in logs.
pub(crate) fn reject_user(url: Url, secret: &str) -> Result<Url, ValueError> {
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refusal("must not contain a user or a password", secret));
    }
    Ok(url)
}

/// Reads `allow_http` and `allow_http_proxy`, which apply to the URL of `key`.
pub(crate) fn plain_http(section: &Section<'_>, key: &str, url: Option<&Spot<Url>>) -> PlainHttp {
    let is_allowed = or(section.get("allow_http", boolean), false);
    let by_proxy = section.get("allow_http_proxy", boolean).filter(|spot| spot.value);
    if let Some(spot) = url.filter(|spot| !is_allowed && is_plain(&spot.value)) {
        let why = "must be https to another machine, found http: the key and the recordings would be sent \
                   unencrypted";
        let https = spot.value.as_str().replacen("http", "https", 1);
        let fix = format!("write \"{}\"; or, in a trusted network, add allow_http = true", https.trim_end_matches('/'));
        section.report_value(key, spot.span.clone(), refusal(why, fix));
    }
    match (is_allowed, by_proxy) {
        (true, Some(_)) => PlainHttp::Proxied,
        (true, None) => PlainHttp::Direct,
        (false, by_proxy) => {
            if let Some(spot) = by_proxy {
                let fix = "add allow_http = true beside it, or remove it: https can use a proxy without it";
                section.report_value(
                    "allow_http_proxy",
                    spot.span,
                    refusal("is for plain http, which is not allowed here", fix),
                );
            }
            PlainHttp::Refused
        }
    }
}

fn is_plain(url: &Url) -> bool {
    is_unencrypted_remote(url.scheme(), url.host_str().unwrap_or_default())
}
