//! Reads what reverse proxies say about the original request: `Forwarded` (RFC 7239), and `X-Forwarded-For`, `-Proto`,
//! `-Host` and `-Prefix`. Pure.
//!
//! Only the operator's own proxies are believed. Each proxy appends to the end of a header, so a header is read from
//! its end: as long as an entry says that its proxy got the request from another trusted proxy, the entry before it is
//! read too. Anything further ahead was sent by the client. A malformed value counts as absent.

use crate::wire::network::Network;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, header};
use std::net::{IpAddr, SocketAddr};

/// The original request's address, as far as the proxies report it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Original {
    pub scheme: Option<&'static str>,
    /// The host, with a port unless it is the scheme's default.
    pub host: Option<String>,
    /// The start of every path: empty, or it begins with a slash and does not end with one.
    pub prefix: String,
}

/// Reads the headers of a request that a trusted proxy sent. Where `Forwarded` and `X-Forwarded-…` contradict each
/// other, neither value is used: one of them came from the client, through a proxy that sets only the other.
pub fn original_address(headers: &HeaderMap, trusted: &[Network]) -> Original {
    let (standard, usual) = (forwarded(headers, trusted), x_forwarded(headers, trusted));
    Original {
        scheme: agreed(standard.scheme, usual.scheme),
        host: agreed(standard.host, usual.host),
        prefix: usual.prefix,
    }
}

fn agreed<T: PartialEq>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => (one == other).then_some(one),
        (one, other) => one.or(other),
    }
}

/// The most proxies whose entries are read.
const HOPS: usize = 16;

/// Reads `Forwarded` (RFC 7239).
fn forwarded(headers: &HeaderMap, trusted: &[Network]) -> Original {
    let values = joined_values(headers, header::FORWARDED.as_str());
    let Some(elements) = values.map(|values| elements(&values)) else { return Original::default() };
    let mut original = Original::default();
    for element in elements.iter().rev().take(HOPS) {
        let value = |name: &str| element.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        // The outermost entry that has a value is nearest to the client.
        original.scheme = value("proto").and_then(|proto| scheme(proto)).or(original.scheme);
        original.host = value("host").and_then(|value| host(value)).or(original.host);
        let from = value("for").and_then(|node| address(node));
        if !from.is_some_and(|from| trusted.iter().any(|network| network.contains(from))) {
            break;
        }
    }
    original
}

/// Reads the older headers. Each one is a list, or has only the value of the last proxy that sets it.
fn x_forwarded(headers: &HeaderMap, trusted: &[Network]) -> Original {
    let list = |name: &str| -> Vec<String> {
        let values = joined_values(headers, name).unwrap_or_default();
        values.split(',').map(|value| value.trim().to_owned()).filter(|value| !value.is_empty()).collect()
    };
    let is_trusted =
        |node: &&String| address(node).is_some_and(|from| trusted.iter().any(|network| network.contains(from)));
    // Counts the proxies that passed the request on to another one; the last one sent it here.
    let hops = list("x-forwarded-for").iter().rev().take(HOPS).take_while(is_trusted).count();
    let nearest = |name: &str| {
        let values = list(name);
        values.len().checked_sub(1).and_then(|last| values.get(last.saturating_sub(hops)).cloned())
    };
    Original {
        scheme: nearest("x-forwarded-proto").as_deref().and_then(scheme),
        host: nearest("x-forwarded-host").as_deref().and_then(host),
        prefix: nearest("x-forwarded-prefix").as_deref().and_then(prefix).unwrap_or_default(),
    }
}

/// Returns all values of a header joined to one; `None` if the header is absent or a value is not text.
fn joined_values(headers: &HeaderMap, name: &str) -> Option<String> {
    let values: Option<Vec<&str>> = headers.get_all(name).into_iter().map(|value| value.to_str().ok()).collect();
    values.filter(|values| !values.is_empty()).map(|values| values.join(", "))
}

fn scheme(text: &str) -> Option<&'static str> {
    ["http", "https"].into_iter().find(|scheme| scheme.eq_ignore_ascii_case(text))
}

/// Checks a host. It becomes part of addresses that are given out, so it must not contain anything that ends the host
/// or names another one.
fn host(text: &str) -> Option<String> {
    const LONGEST: usize = 255 + 6;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':' | b'[' | b']');
    let authority = text.parse::<Authority>().ok().filter(|_| text.len() <= LONGEST && text.bytes().all(plain))?;
    let is_whole = !authority.host().is_empty() && (authority.port_u16().is_some() || !text.ends_with(':'));
    let url = reqwest::Url::parse(&format!("http://{text}/")).ok().filter(|_| is_whole)?;
    url.has_host().then(|| text.to_ascii_lowercase())
}

/// Accepts only a path that needs no escaping and has no `.` or `..`.
fn prefix(text: &str) -> Option<String> {
    const LONGEST: usize = 200;
    let path = text.trim_end_matches('/');
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'~' | b'/');
    let is_plain = path.len() <= LONGEST && path.bytes().all(plain);
    let mut parts = path.strip_prefix('/')?.split('/');
    (is_plain && parts.all(|part| !matches!(part, "" | "." | ".."))).then(|| path.to_owned())
}

/// Returns the IP address of a node, with or without a port and brackets; `None` for a node that hides its address.
fn address(node: &str) -> Option<IpAddr> {
    let bare = node.trim_start_matches('[').trim_end_matches(']');
    let with_port = || node.parse::<SocketAddr>().map(|socket| socket.ip());
    bare.parse::<IpAddr>().or_else(|_| with_port()).ok().map(|address| address.to_canonical())
}

type Element = Vec<(String, String)>;

/// Returns the elements of a `Forwarded` header; none if it does not follow the RFC's syntax.
fn elements(text: &str) -> Vec<Element> {
    let mut elements = vec![Element::new()];
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let Some((pair, after)) = pair(rest) else { return Vec::new() };
        if let (Some(element), Some(pair)) = (elements.last_mut(), pair) {
            element.push(pair);
        }
        let after = after.trim_start();
        match after.as_bytes().first() {
            None => break,
            Some(b';') => {}
            Some(b',') => elements.push(Element::new()),
            Some(_) => return Vec::new(),
        }
        rest = after[1..].trim_start();
    }
    elements
}

/// Parses `name=value` or `name="value"` and returns it with the rest. An empty place between two separators is no
/// pair.
fn pair(text: &str) -> Option<(Option<(String, String)>, &str)> {
    if text.starts_with([',', ';']) {
        return Some((None, text));
    }
    let (name, rest) = text.split_once('=')?;
    let is_token = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    if !is_token(name) {
        return None;
    }
    let Some(quoted) = rest.strip_prefix('"') else {
        let end = rest.find([',', ';', ' ', '\t']).unwrap_or(rest.len());
        let (value, after) = rest.split_at(end);
        // Many proxies omit the quotes that a port or brackets need.
        let is_plain = value.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
        return is_plain.then(|| (Some((name.to_owned(), value.to_owned())), after));
    };
    let mut value = String::new();
    let mut letters = quoted.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Some((Some((name.to_owned(), value)), &quoted[at + 1..])),
            '\\' => value.push(letters.next()?.1),
            _ => value.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    fn read(heads: &[(&'static str, &str)]) -> Original {
        let mut headers = HeaderMap::new();
        for (name, value) in heads {
            headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).unwrap());
        }
        original_address(&headers, &["10.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()])
    }

    fn is(scheme: Option<&'static str>, host: Option<&str>, prefix: &str) -> Original {
        Original { scheme, host: host.map(str::to_owned), prefix: prefix.to_owned() }
    }

    #[test]
    fn what_a_proxy_says() {
        let https = is(Some("https"), Some("stt.example.org"), "");
        for forwarded in [
            "for=203.0.113.9;proto=https;host=stt.example.org",
            "For=\"[2001:db8::1]:4711\" ; Proto=HTTPS;Host=\"STT.example.org\"",
            ";;by=10.0.0.1;host=stt.example.org;proto=https",
            // The client's own values stand ahead.
            "host=evil.example;proto=http, for=203.0.113.9;host=stt.example.org;proto=https",
            // Two proxies: the client sent its request to the outer one.
            "for=203.0.113.9;host=stt.example.org;proto=https, for=10.1.2.3;host=inner.example;proto=http",
            "host=evil.example, for=203.0.113.9;host=stt.example.org;proto=https, for=\"10.1.2.3:80\"",
        ] {
            assert_eq!(read(&[("forwarded", forwarded)]), https, "{forwarded}");
        }
        let all =
            [("x-forwarded-proto", "https"), ("x-forwarded-host", "stt.example.org"), ("x-forwarded-prefix", "/a/")];
        assert_eq!(read(&all), is(Some("https"), Some("stt.example.org"), "/a"));
        let two = [
            ("x-forwarded-for", "203.0.113.9, 10.0.0.7"),
            ("x-forwarded-host", "evil.example, stt.example.org, inner.example"),
            ("x-forwarded-proto", "https"),
        ];
        assert_eq!(read(&two), https);
        assert_eq!(
            read(&[("x-forwarded-host", "evil.example"), ("x-forwarded-host", "a.example:8443")]).host.unwrap(),
            "a.example:8443"
        );
    }

    #[test]
    fn two_kinds_that_contradict_each_other_are_not_believed() {
        let both = |host| [("forwarded", "proto=https;host=a.example"), ("x-forwarded-host", host)];
        assert_eq!(read(&both("a.example")), is(Some("https"), Some("a.example"), ""));
        assert_eq!(read(&both("b.example")), is(Some("https"), None, ""));
    }

    #[test]
    fn what_is_not_plain_is_not_there() {
        for wrong in [
            "",
            "a b",
            "a/b",
            "u@a",
            "a\\b",
            "a?b",
            "a#b",
            "<a>",
            "\"a\"",
            "a:",
            "a:99999",
            ":80",
            "[::1",
            "%61",
            "é",
            &"a".repeat(300),
        ] {
            assert_eq!(host(wrong), None, "{wrong}");
        }
        for wrong in ["", "a", "//a", "/a//b", "/../a", "/a/./b", "/a b", "/a?b", "/a%2f", "/\"", &"/a".repeat(200)] {
            assert_eq!(prefix(wrong), None, "{wrong}");
        }
        for wrong in ["javascript", "https://", "ftp", ""] {
            assert_eq!(scheme(wrong), None, "{wrong}");
        }
        for wrong in ["host", "host=\"a", "host=\"a\\", "=a", "ho st=a", "host=a b", "host=a\" "] {
            assert_eq!(read(&[("forwarded", wrong)]), Original::default(), "{wrong}");
        }
    }

    proptest! {
        /// Whatever is sent, an address made of it has that host and path and nothing else.
        #[test]
        fn whatever_is_sent_makes_a_plain_address(
            forwarded in "[a-z0-9.:=;,\"\\\\/@\\[\\] ]{0,60}",
            host in "[ -~]{0,40}",
            prefix in "[ -~]{0,40}",
        ) {
            let heads = [
                ("forwarded", forwarded.as_str()), ("x-forwarded-host", host.as_str()), ("x-forwarded-prefix", prefix.as_str()),
            ];
            let Original { scheme, host, prefix } = read(&heads);
            let host = host.unwrap_or_else(|| "a.example".to_owned());
            let text = format!("{}://{host}{prefix}/file/x", scheme.unwrap_or("http"));
            let url = reqwest::Url::parse(&text).map_err(|error| TestCaseError::fail(format!("{text}: {error}")))?;
            prop_assert_eq!(url.path(), format!("{prefix}/file/x"));
            prop_assert!(url.query().is_none() && url.fragment().is_none() && url.username().is_empty());
        }
    }
}
