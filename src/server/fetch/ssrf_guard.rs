//! Decides which addresses the service may connect to where a client names them: audio that is fetched, and callbacks.
//! Without it, anybody with a key could make the service send requests inside a private network.

use crate::tls::http_client;
use crate::tls::trust::Authorities;
use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// Which addresses the service may connect to.
#[derive(Clone)]
pub struct AddressPolicy(Arc<dyn Fn(IpAddr) -> bool + Send + Sync>);

impl AddressPolicy {
    /// Allows the public internet and nothing else.
    pub fn public() -> Self {
        Self::from_predicate(is_public)
    }

    pub fn unrestricted() -> Self {
        Self::from_predicate(|_| true)
    }

    /// Allows the addresses for which `may` returns true.
    pub fn from_predicate(may: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(may))
    }

    fn may(&self, address: IpAddr) -> bool {
        (self.0)(address)
    }
}

impl fmt::Debug for AddressPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reach(…)")
    }
}

/// Why an address is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the address is inside a private network, and this service goes only to public ones")]
pub struct Forbidden;

/// Checks whether a request may go to this URL. A name is checked when it is resolved.
///
/// # Errors
/// [`Forbidden`] if the host is an address that is not allowed, or if there is no host.
pub fn check(url: &Url, reach: &AddressPolicy) -> Result<(), Forbidden> {
    let address = match url.host_str() {
        Some(host) => host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>(),
        None => return Err(Forbidden),
    };
    match address {
        Ok(address) if !reach.may(address) => Err(Forbidden),
        _ => Ok(()),
    }
}

/// Whether a connection to the URL's host can be opened within `wait`. Sends nothing.
pub async fn is_reachable(url: &Url, reach: &AddressPolicy, wait: Duration) -> bool {
    let (Ok(()), Some(host), Some(port)) = (check(url, reach), url.host_str(), url.port_or_known_default()) else {
        return false;
    };
    let connecting = async {
        let found = tokio::net::lookup_host((host.trim_matches(['[', ']']), port)).await;
        for address in found.into_iter().flatten().filter(|address| reach.may(address.ip())) {
            if TcpStream::connect(address).await.is_ok() {
                return true;
            }
        }
        false
    };
    tokio::time::timeout(wait, connecting).await.unwrap_or(false)
}

/// Creates an HTTP client that connects only to addresses that `reach` allows. Each name is resolved once for a
/// connection, and the client connects to the addresses that were checked. It follows no redirect and uses no proxy,
/// which would resolve names itself. Without CA certificates on this machine it reaches only http addresses, and https
/// addresses whose certificates `authorities` have signed.
pub fn client(
    reach: &AddressPolicy,
    authorities: &Authorities,
    connect: Duration,
    idle: Duration,
) -> reqwest::Result<reqwest::Client> {
    let builder = || {
        let resolver = Arc::new(CheckedResolver(reach.clone()));
        http_client::builder().dns_resolver(resolver).no_proxy().connect_timeout(connect).read_timeout(idle)
    };
    authorities.build(false, builder, |error| {
        tracing::warn!(%error, "this machine has no CA certificates: the service fetches and calls nothing over https; install the package `ca-certificates`");
    })
}

struct CheckedResolver(AddressPolicy);

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.0.clone();
        Box::pin(async move {
            let resolved = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let allowed: Vec<SocketAddr> = resolved.filter(|address| reach.may(address.ip())).collect();
            if allowed.is_empty() {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, Forbidden).into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Whether an error of the client was caused by [`Forbidden`].
pub fn is_forbidden(error: &reqwest::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        let inside = error.downcast_ref::<io::Error>().and_then(|error| error.get_ref());
        if error.is::<Forbidden>() || inside.is_some_and(<dyn std::error::Error + Send + Sync>::is::<Forbidden>) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Whether an address is on the public internet (the registries of RFC 6890; an address that embeds an IPv4 address
/// counts as that).
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, d] = address.octets();
    let special = match (a, b, c) {
        (0 | 10 | 127 | 224.., ..) => true,
        (100, 64..=127, _) | (169, 254, _) | (172, 16..=31, _) | (192, 168, _) | (198, 18 | 19, _) => true,
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 51, 100) | (203, 0, 113) => true,
        // A large cloud uses this address for services to its own machines.
        (168, 63, 129) => d == 16,
        _ => false,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        // Addresses that embed an IPv4 address: mapped, compatible (with :: and ::1), translated, 6to4.
        [0, 0, 0, 0, 0, 0xffff | 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(v4(high, low)),
        [0x2002, high, low, ..] => is_public_v4(v4(high, low)),
        // Tunnels, benchmarks, documentation.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => false,
        // The only block of global unicast addresses that is allocated.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_is_inside_is_not_public() {
        let inside = [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "168.63.129.16",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:a00:1::",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "3fff::1",
        ];
        for address in inside {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in ["1.1.1.1", "172.32.0.1", "100.128.0.1", "192.0.1.1", "2606:4700::1111", "::ffff:1.1.1.1"] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn however_an_address_is_written() {
        for host in
            ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::1]", "[::ffff:7f00:1]", "①27.0.0.1"]
        {
            let url = Url::parse(&format!("http://{host}:80/a")).unwrap();
            assert_eq!(check(&url, &AddressPolicy::public()), Err(Forbidden), "{host}");
            assert_eq!(check(&url, &AddressPolicy::unrestricted()), Ok(()));
        }
        assert_eq!(check(&Url::parse("https://example.org/a").unwrap(), &AddressPolicy::public()), Ok(()));
    }

    #[tokio::test]
    async fn a_name_is_judged_by_where_it_leads() {
        let client =
            client(&AddressPolicy::public(), &Authorities::default(), Duration::from_secs(5), Duration::from_secs(5))
                .unwrap();
        let error = client.get("http://localhost:9/").send().await.unwrap_err();
        assert!(is_forbidden(&error), "{error:?}");
    }
}
