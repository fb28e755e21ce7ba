//! Which addresses a notification may go to. Whoever adds a webhook chooses where this server
//! connects to, so what only this server can reach is refused unless its operator allows it.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use ipnet::IpNet;

/// Addresses that are allowed: the public ones, and what the operator adds.
#[derive(Debug, Clone, Default)]
pub struct AllowedAddresses {
    /// All addresses.
    pub all: bool,
    /// Networks beside the public addresses.
    pub networks: Vec<Network>,
}

/// A network, as `10.0.0.0/8` or `fd00::/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(IpNet);

/// The text names no network.
#[derive(Debug, thiserror::Error)]
#[error("must be a network such as 10.0.0.0/8, 192.0.2.7/32 or fd00::/8")]
pub struct NotANetwork;

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        text.parse().map(Self).map_err(|_| NotANetwork)
    }
}

impl AllowedAddresses {
    /// Whether this address may be connected to.
    pub fn allows(&self, address: IpAddr) -> bool {
        // An IPv4 address may come dressed as an IPv6 one.
        let address = address.to_canonical();
        let named = self.networks.iter().any(|network| network.0.contains(&address));
        self.all || named || is_public(address)
    }
}

/// The address that a URL names without a name, if it does so.
pub(crate) fn literal(url: &reqwest::Url) -> Option<IpAddr> {
    url.host_str()?.trim_matches(['[', ']']).parse().ok()
}

/// IPv4 networks that are not public: this machine, private, link-local, shared, documentation,
/// benchmarks, relays, multicast, reserved; and a cloud's own address for its machines.
const NOT_PUBLIC_V4: [([u8; 4], u32); 16] = [
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([168, 63, 129, 16], 32),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    ([224, 0, 0, 0], 4),
    ([240, 0, 0, 0], 4),
];

/// IPv6 networks within the global ones that are not public, or hide an IPv4 address: special
/// purposes and Teredo, documentation, 6to4.
const NOT_PUBLIC_V6: [([u16; 2], u32); 4] =
    [([0x2001, 0], 23), ([0x2001, 0xdb8], 32), ([0x2002, 0], 16), ([0x3fff, 0], 20)];

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    let within = |(network, length): ([u8; 4], u32)| {
        (bits ^ Ipv4Addr::from(network).to_bits()) >> (32 - length) == 0
    };
    !NOT_PUBLIC_V4.into_iter().any(within)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let bits = address.to_bits();
    if bits >> 32 == 0x0064_ff9b << 64 {
        // What a translator makes of an IPv4 address.
        let [.., a, b, c, d] = address.octets();
        return is_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    let within = |([first, second], length): ([u16; 2], u32)| {
        let network = Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0).to_bits();
        (bits ^ network) >> (128 - length) == 0
    };
    // Nothing but 2000::/3 is global.
    bits >> 125 == 1 && !NOT_PUBLIC_V6.into_iter().any(within)
}
