//! The addresses of this machine, and what to type into a browser.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// The address that only this machine can connect to.
pub(crate) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// The addresses at which other machines can reach this one, the address of the default route first. Containers and tunnels
/// have addresses too, and a phone can usually reach only that one.
pub(crate) fn default_route_first() -> Vec<IpAddr> {
    let interfaces = if_addrs::get_if_addrs().unwrap_or_default();
    let mut addresses: Vec<IpAddr> = interfaces.into_iter().map(|interface| interface.ip()).collect();
    addresses.retain(|address| match address {
        IpAddr::V4(address) => !address.is_loopback() && !address.is_unspecified(),
        // Link-local addresses need the name of the link, which browsers do not accept.
        IpAddr::V6(address) => !address.is_loopback() && !address.is_unicast_link_local(),
    });
    addresses.sort_unstable();
    addresses.dedup();
    if let Some(first) = default_route() {
        addresses.retain(|address| *address != first);
        addresses.insert(0, first);
    }
    addresses
}

/// The local address of the default route. Connecting a datagram socket sends no packet.
fn default_route() -> Option<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    // An address that is reserved for documentation.
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    Some(socket.local_addr().ok()?.ip()).filter(|address| !address.is_loopback() && !address.is_unspecified())
}

/// The server's URLs: for browsers on this machine, and for browsers on others.
pub(crate) fn page_urls(bound: SocketAddr, tls: bool, addresses: &[IpAddr]) -> (String, Vec<String>) {
    let scheme = if tls { "https" } else { "http" };
    let url = |address: IpAddr| format!("{scheme}://{}/", SocketAddr::new(address, bound.port()));
    match bound.ip() {
        address if address.is_loopback() => (url(address), Vec::new()),
        IpAddr::V4(Ipv4Addr::UNSPECIFIED) => {
            (url(LOOPBACK), addresses.iter().filter(|address| address.is_ipv4()).copied().map(url).collect())
        }
        IpAddr::V6(Ipv6Addr::UNSPECIFIED) => (url(LOOPBACK), addresses.iter().copied().map(url).collect()),
        address => (url(address), vec![url(address)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_those_a_browser_can_open() {
        let addresses = ["192.168.0.2".parse().unwrap(), "fd00::2".parse().unwrap()];
        let urls = |bound: &str, tls| page_urls(bound.parse().unwrap(), tls, &addresses);
        assert_eq!(urls("127.0.0.1:80", false), ("http://127.0.0.1:80/".to_owned(), vec![]));
        assert_eq!(urls("[::1]:80", true), ("https://[::1]:80/".to_owned(), vec![]));
        let (own, others) = urls("0.0.0.0:11435", true);
        assert_eq!(
            (own.as_str(), others),
            ("https://127.0.0.1:11435/", vec!["https://192.168.0.2:11435/".to_owned()])
        );
        assert_eq!(urls("[::]:80", false).1[1], "http://[fd00::2]:80/");
        assert_eq!(urls("10.0.0.1:80", false).1, ["http://10.0.0.1:80/"]);
    }

    #[test]
    fn nobody_is_sent_to_their_own_loopback() {
        assert!(default_route_first().iter().all(|address| !address.is_loopback()));
    }
}
