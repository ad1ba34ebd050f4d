//! Wrong logins, counted by where they come from.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

/// Wrong ones in a minute; then that address has to wait.
const WRONG_MAX: u32 = 10;
const MINUTE: Duration = Duration::from_secs(60);
/// Addresses that are remembered; with more, those go whose minute began first.
const ADDRESSES_MAX: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct LoginAttempts {
    /// When the minute began, by the monotonic clock, and how many there were since.
    wrong: HashMap<IpAddr, (Duration, u32)>,
}

impl LoginAttempts {
    /// How long an address has to wait before it may try again.
    pub(super) fn wait(&self, from: IpAddr, now: Duration) -> Option<Duration> {
        let (began, count) = self.wrong.get(&network(from))?;
        let left = (*began + MINUTE).saturating_sub(now);
        (*count >= WRONG_MAX && !left.is_zero()).then_some(left)
    }

    /// One more was wrong.
    pub(super) fn wrong(&mut self, from: IpAddr, now: Duration) {
        if self.wrong.len() >= ADDRESSES_MAX {
            self.wrong.retain(|_, (began, _)| now < *began + MINUTE);
        }
        if self.wrong.len() >= ADDRESSES_MAX {
            let first = self.wrong.iter().min_by_key(|(_, (began, _))| *began);
            if let Some(first) = first.map(|(address, _)| *address) {
                self.wrong.remove(&first);
            }
        }
        let (began, count) = self.wrong.entry(network(from)).or_insert((now, 0));
        if now >= *began + MINUTE {
            (*began, *count) = (now, 0);
        }
        *count += 1;
    }
}

/// Whoever has one address of a /64 has all of them.
fn network(from: IpAddr) -> IpAddr {
    match from.to_canonical() {
        IpAddr::V6(address) => {
            let prefix = address.to_bits() & (u128::MAX << 64);
            IpAddr::V6(prefix.into())
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_ten_wrong_ones_an_address_waits_and_others_do_not() {
        let mut attempts = LoginAttempts::default();
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let start = Duration::from_secs(100);
        for second in 0..10 {
            let now = start + Duration::from_secs(second);
            assert_eq!(attempts.wait(address("2001:db8::1"), now), None);
            attempts.wrong(address("2001:db8::1"), now);
        }
        let now = start + Duration::from_secs(10);
        let wait = attempts.wait(address("2001:db8::2"), now);
        assert_eq!(wait, Some(Duration::from_secs(50)), "the same network");
        assert_eq!(attempts.wait(address("2001:db8:0:1::1"), now), None);
        assert_eq!(attempts.wait(address("127.0.0.1"), now), None);
        let now = start + MINUTE;
        assert_eq!(attempts.wait(address("2001:db8::1"), now), None);
        attempts.wrong(address("2001:db8::1"), now);
        assert_eq!(attempts.wait(address("2001:db8::1"), now), None);
    }

    #[test]
    fn a_crowd_takes_no_more_memory_than_it_may() {
        let mut attempts = LoginAttempts::default();
        for number in 0..20_000_u32 {
            let address = IpAddr::V4(number.into());
            attempts.wrong(address, Duration::from_millis(number.into()));
        }
        assert_eq!(attempts.wrong.len(), ADDRESSES_MAX);
    }
}
