//! Which user of this machine owns the other end of a loopback connection. Linux only; elsewhere nothing is known.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The user id of this process.
pub(crate) fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The user id that owns each TCP socket of this machine, by the socket's own address.
pub(crate) fn owners() -> HashMap<SocketAddr, u32> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let texts = tables.map(|table| std::fs::read_to_string(table).unwrap_or_default());
    texts
        .iter()
        .flat_map(|text| text.lines().skip(1).filter_map(owner))
        .collect()
}

/// Reads a line such as `0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000 …`.
fn owner(line: &str) -> Option<(SocketAddr, u32)> {
    let mut fields = line.split_ascii_whitespace();
    let (address, port) = fields.nth(1)?.split_once(':')?;
    let uid = fields.nth(5)?.parse().ok()?;
    let port = u16::from_str_radix(port, 16).ok()?;
    Some(((ip(address)?, port).into(), uid))
}

/// The kernel writes each 32-bit word of an address as a number in its own byte order.
fn ip(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = hex.get(at * 8..at * 8 + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    match hex.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?];
            let bytes: [u8; 16] = words.as_flattened().try_into().ok()?;
            Some(Ipv6Addr::from(bytes).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn lines_of_both_tables_are_read() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1";
        assert_eq!(owner(line), Some(("127.0.0.1:8080".parse().unwrap(), 1000)));
        let line = "   1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 0:0 0:0 0  33 0";
        assert_eq!(owner(line), Some(("[::1]:80".parse().unwrap(), 33)));
        assert_eq!(owner("  sl  local_address"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn owner_of_a_connected_socket_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let owners = owners();
        assert_eq!(owners.get(&client.local_addr().unwrap()), Some(&own()));
    }
}
