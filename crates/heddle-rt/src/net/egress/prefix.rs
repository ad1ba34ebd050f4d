//! A range of addresses, as `10.0.0.0/8`.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// All addresses that begin with the same bits. One without a length is a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    base: IpAddr,
    length: u8,
}

/// Text that is no range of addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no range of addresses such as 10.0.0.0/8 or fd00::/8")]
pub struct NoPrefix(String);

impl Prefix {
    /// How many bits are fixed.
    #[must_use]
    pub fn length(&self) -> u8 {
        self.length
    }

    /// Whether an address is in the range. Addresses of the two families have nothing in common.
    #[must_use]
    pub fn holds(&self, address: IpAddr) -> bool {
        let (base, bits) = number(self.base);
        let (number, of) = number(address);
        let free = u32::from(bits - self.length);
        // A range of everything shifts all bits out.
        of == bits && (base ^ number).checked_shr(free).unwrap_or_default() == 0
    }
}

/// The bits of an address, and how many there are.
fn number(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(v4) => (u32::from(v4).into(), 32),
        IpAddr::V6(v6) => (v6.into(), 128),
    }
}

impl FromStr for Prefix {
    type Err = NoPrefix;

    fn from_str(text: &str) -> Result<Self, NoPrefix> {
        let no = || NoPrefix(text.to_owned());
        let (base, length) = match text.split_once('/') {
            Some((base, length)) => (base, Some(length)),
            None => (text, None),
        };
        let base: IpAddr = base.parse().map_err(|_| no())?;
        let (_, bits) = number(base);
        let length = match length {
            Some(length) => length.parse().map_err(|_| no())?,
            None => bits,
        };
        if length > bits {
            return Err(no());
        }
        Ok(Self { base, length })
    }
}

impl TryFrom<String> for Prefix {
    type Error = NoPrefix;

    fn try_from(text: String) -> Result<Self, NoPrefix> {
        text.parse()
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.length)
    }
}
