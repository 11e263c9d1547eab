//! Which user of this machine has a connection over a loopback address: the kernel's tables of TCP connections say it
//! (`proc_net_tcp`, and `tcp6` for IPv6).

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Returns the number of the user who opened the connection from `peer` to a port of this machine; `None` if that is not
/// certain. Blocks for a moment.
pub fn peer_user(peer: SocketAddr, port: u16) -> Option<u32> {
    if !peer.ip().to_canonical().is_loopback() {
        return None;
    }
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    user_in(&tables.concat(), peer, port)
}

/// Returns the owner of the only connection from `peer` to this port. With several owners nobody is believed: another user
/// may have the same local port with another loopback address.
fn user_in(tables: &str, peer: SocketAddr, port: u16) -> Option<u32> {
    let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
    let owner = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (from, to, user) = (address(fields.next()?)?, address(fields.next()?)?, fields.nth(4)?);
        (from == peer && to.port() == port).then(|| user.parse::<u32>().ok())?
    };
    let mut owners: Vec<u32> = tables.lines().filter_map(owner).collect();
    owners.dedup();
    match owners.as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}

/// Reads `0100007F:1F90`: the words of the address in the order of the machine's bytes.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |at: usize| u32::from_str_radix(host.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    let ip = match host.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let bytes: [u8; 16] = words.concat().try_into().ok()?;
            IpAddr::V6(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn our_own_connection_is_ours() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(host) else { continue };
            let connection = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (peer, port) = (connection.local_addr().unwrap(), listener.local_addr().unwrap().port());
            assert_eq!(peer_user(peer, port), Some(rustix::process::geteuid().as_raw()));
            assert_eq!(peer_user(peer, port ^ 1), None);
        }
        assert_eq!(peer_user("192.0.2.1:80".parse().unwrap(), 80), None);
    }

    #[cfg(target_endian = "little")]
    #[test]
    fn where_two_users_share_a_port_nobody_is_believed() {
        let line = |to: &str, user: u32| {
            format!("   0: 0100007F:15B3 {to}:2119 01 00000000:00000000 00:00000000 00000000  {user}        0 1 1\n")
        };
        let peer = "127.0.0.1:5555".parse().unwrap();
        assert_eq!(user_in(&line("0100007F", 1000), peer, 8473), Some(1000));
        let two = line("0100007F", 1000) + &line("0200007F", 1001);
        assert_eq!(user_in(&two, peer, 8473), None);
        for broken in ["", "x", "0: 0100007F", "0: é0100007F:15B3 0100007F:2119 01 0 0 0 7"] {
            assert_eq!(user_in(broken, peer, 8473), None);
        }
    }
}
