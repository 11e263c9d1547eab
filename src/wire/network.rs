//! Networks of IP addresses, written as `10.0.0.0/8`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// All addresses with the same leading bits; a single address is a network too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    /// The number of leading bits.
    bits: u8,
}

/// Why a text is not a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The text is not an address, or the part after the slash is not a valid number of bits.
    #[error("must be an IP address or a network such as 10.0.0.0/8")]
    Malformed,
    /// The address is not the first one of the network.
    #[error("must begin with the first address of its network, {0}")]
    NotTheFirst(Network),
}

impl Network {
    /// Whether this address is in the network. An IPv4 address counts as the same when it is written as an IPv6 one.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && first(address, self.bits) == self.first
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address = address.parse::<IpAddr>().map_err(|_| NetworkError::Malformed)?;
        let max_bits = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => max_bits,
            Some(bits) if bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                bits.parse().ok().filter(|bits| *bits <= max_bits).ok_or(NetworkError::Malformed)?
            }
            Some(_) => return Err(NetworkError::Malformed),
        };
        let network = Self { first: first(address, bits), bits };
        if network.first != address {
            return Err(NetworkError::NotTheFirst(network));
        }
        // `::ffff:10.0.0.0/104` means 10.0.0.0/8.
        match address.to_canonical() {
            canonical if canonical != address && bits >= 96 => Ok(Self { first: canonical, bits: bits - 96 }),
            _ => Ok(network),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

fn first(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4((u32::from(address) & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6((u128::from(address) & mask).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_holds_its_addresses() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.1.2", "11.0.0.0"),
            ("127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("127.0.0.1", "::ffff:127.0.0.1", "::1"),
            ("0.0.0.0/0", "203.0.113.9", "::1"),
            ("::/0", "2001:db8::1", "10.0.0.1"),
            ("fd00::/8", "fdff::1", "fe00::1"),
            ("::1", "::1", "::2"),
            ("::ffff:10.0.0.0/104", "10.9.9.9", "11.0.0.1"),
        ] {
            let network: Network = network.parse().unwrap();
            assert!(network.contains(inside.parse().unwrap()), "{network} {inside}");
            assert!(!network.contains(outside.parse().unwrap()), "{network} {outside}");
        }
    }

    #[test]
    fn what_is_no_network() {
        for text in ["", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/+8", "::/129", "example.org", "10.0.0/8"]
        {
            assert_eq!(text.parse::<Network>(), Err(NetworkError::Malformed), "{text}");
        }
        let error = "10.1.0.0/8".parse::<Network>().unwrap_err();
        assert!(error.to_string().ends_with("10.0.0.0/8"), "{error}");
    }
}
