//! Web addresses. Most addresses in creates have a simple form that needs no parser; parsing one costs as much as all
//! other checks of a create. Also: whether others can read what is sent to an address.

use std::net::{IpAddr, Ipv4Addr};

/// Whether a setting allows plain http to another machine, where others on the network can read the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlainHttp {
    /// No: plain http to this machine only.
    Refused,
    /// Directly, without the proxy that the environment may name.
    Direct,
    /// Also through that proxy, which can read the key too.
    Proxied,
}

impl PlainHttp {
    /// Whether requests to this address may use the proxy that the environment names. Over https, a proxy only forwards
    /// encrypted bytes. This machine is always reached without a proxy.
    pub fn may_use_proxy(self, scheme: &str, host: &str) -> bool {
        !is_loopback(host) && (scheme != "http" || self == Self::Proxied)
    }
}

/// Whether this is plain http to another machine, which others on the network can read.
pub fn is_unencrypted_remote(scheme: &str, host: &str) -> bool {
    scheme == "http" && !is_loopback(host)
}

/// Whether this host is this machine: `localhost`, or a loopback or unspecified address. Names that end in `.localhost`
/// do not count, because some systems ask name servers for them.
pub fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    let is_named = host.eq_ignore_ascii_case("localhost");
    address.map_or(is_named, |ip| ip.to_canonical().is_loopback() || ip.is_unspecified())
}

/// Returns the path of an `http` or `https` address that all parsers read in the same way and do not normalize; `None`
/// for every other address, valid or not.
pub fn unambiguous_path(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"))?;
    let (host, path) = rest.split_at(rest.find('/')?);
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'-' | b'_');
    (is_unambiguous_host(host) && path.bytes().all(is_plain)).then_some(path)
}

/// Whether this is an IPv4 address or a name of lower-case letters, digits and dots, perhaps with a port.
pub fn is_unambiguous_host(host: &str) -> bool {
    let (name, port) = host.split_once(':').unwrap_or((host, "80"));
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    is_port && (name.split('.').all(is_label) || name.parse::<Ipv4Addr>().is_ok())
}

/// Whether this is a label that starts with a letter and has no hyphen: a leading digit might make the name a number,
/// and hyphens occur in encoded names (`xn--`).
fn is_label(label: &str) -> bool {
    let mut bytes = label.bytes();
    let is_letter = |byte: u8| byte.is_ascii_lowercase();
    bytes.next().is_some_and(is_letter) && bytes.all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::uri::Authority;
    use proptest::prelude::*;
    use reqwest::Url;

    #[test]
    fn what_is_this_machine() {
        for host in ["127.0.0.1", "127.9.9.9", "[::1]", "localhost", "LocalHost", "[::ffff:127.0.0.1]", "0.0.0.0"] {
            assert!(is_loopback(host), "{host}");
            assert!(!is_unencrypted_remote("http", host), "{host}");
            assert!(!PlainHttp::Proxied.may_use_proxy("https", host), "{host}");
        }
        for host in ["10.0.0.1", "192.168.0.1", "a.localhost", "localhost.example.org", "[::2]", "169.254.169.254"] {
            assert!(is_unencrypted_remote("http", host) && !is_unencrypted_remote("https", host), "{host}");
            assert!(PlainHttp::Refused.may_use_proxy("https", host), "{host}");
            assert!(!PlainHttp::Direct.may_use_proxy("http", host), "{host}");
            assert!(PlainHttp::Proxied.may_use_proxy("http", host), "{host}");
        }
    }

    #[test]
    fn what_is_plain() {
        for (path, url) in [
            (Some("/file/a-1"), "http://127.0.0.1:8080/file/a-1"),
            (Some("/"), "https://tapes.example/"),
            (None, "https://tapes.example"),
            (None, "ftp://tapes.example/"),
            (None, "http://a@tapes.example/"),
            (None, "http://tapes.example/a.wav"),
            (None, "http://xn--a/"),
            (None, "http://1.2.3.256/"),
            (None, "http://a.256/"),
            (None, "http://a:65536/"),
            (None, "http://a:+1/"),
            (None, "http:///file"),
        ] {
            assert_eq!(unambiguous_path(url), path, "{url}");
        }
    }

    proptest! {
        /// The parsers in use read every accepted address in the same way.
        #[test]
        fn a_parser_would_say_the_same(parts in prop::collection::vec(
            prop::sample::select(vec![
                "http://", "https://", "a", "B", "xn--", "0x1", "1", "256", ".", ":", "80", "+", "/", "file", "-", "?", "#", "@",
                "\\", "%2f", "[", "\n", "é",
            ]),
            0..10,
        )) {
            for url in [parts.concat(), format!("http://a{}", parts.concat()), format!("http://{}/", parts.concat())] {
                let Some(path) = unambiguous_path(&url) else { continue };
                let parsed = Url::parse(&url).map_err(|error| TestCaseError::fail(format!("{url}: {error}")))?;
                prop_assert_eq!(parsed.path(), path);
                let host = url.split('/').nth(2).unwrap_or_default();
                prop_assert!(host.parse::<Authority>().is_ok(), "{host}");
                prop_assert!(host.starts_with(parsed.host_str().unwrap_or_default()), "{host}");
            }
        }
    }
}
