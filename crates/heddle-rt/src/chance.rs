//! Randomness: ids, name suffixes, secrets and jitter.
//!
//! [`Chance::system`] asks the operating system for every draw and is fit for secrets.
//! [`Chance::seeded`] is a SplitMix64 sequence: one seed, one run, and no secret at all.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The letters Kubernetes puts behind `generateName`: no vowels, so no words by accident, and
/// nothing that is mistaken for something else.
const SUFFIX_ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A cheap handle on randomness. Clones of a seeded one draw from the same sequence.
#[derive(Clone, Debug)]
pub struct Chance {
    seeded: Option<Arc<AtomicU64>>,
}

impl Chance {
    /// The operating system's randomness.
    #[must_use]
    pub fn system() -> Self {
        Self { seeded: None }
    }

    /// A reproducible sequence.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self {
            seeded: Some(Arc::new(AtomicU64::new(seed))),
        }
    }

    /// Fills `bytes`.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the one place that asks for randomness"
    )]
    pub fn fill(&self, bytes: &mut [u8]) {
        match &self.seeded {
            None => getrandom::fill(bytes).expect("the operating system provides randomness"),
            Some(state) => {
                for chunk in bytes.chunks_mut(8) {
                    chunk.copy_from_slice(&split_mix(state).to_le_bytes()[..chunk.len()]);
                }
            }
        }
    }

    /// Any number.
    #[must_use]
    pub fn u64(&self) -> u64 {
        let mut bytes = [0; 8];
        self.fill(&mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// A number below `limit`, each equally likely; 0 when `limit` is 0.
    #[must_use]
    pub fn below(&self, limit: u64) -> u64 {
        if limit == 0 {
            return 0;
        }
        // The last, incomplete stretch of u64 would favour small numbers, so it is drawn again.
        let complete = u64::MAX - u64::MAX % limit;
        loop {
            let draw = self.u64();
            if draw < complete {
                return draw % limit;
            }
        }
    }

    /// A version 4 UUID in its usual text form.
    #[must_use]
    pub fn uuid(&self) -> String {
        let mut b = [0; 16];
        self.fill(&mut b);
        b[6] = (b[6] & 0x0f) | 0x40;
        b[8] = (b[8] & 0x3f) | 0x80;
        let hex = hex(&b);
        format!(
            "{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }

    /// `length` characters that are safe inside a Kubernetes name.
    #[must_use]
    pub fn suffix(&self, length: usize) -> String {
        let alphabet = SUFFIX_ALPHABET.len() as u64;
        (0..length)
            .map(|_| {
                char::from(
                    SUFFIX_ALPHABET[usize::try_from(self.below(alphabet)).expect("below 27")],
                )
            })
            .collect()
    }

    /// A secret of `bytes` random bytes, in hexadecimal.
    #[must_use]
    pub fn token(&self, bytes: usize) -> String {
        let mut secret = vec![0; bytes];
        self.fill(&mut secret);
        hex(&secret)
    }

    /// Anything from nothing to `limit`: full jitter.
    #[must_use]
    pub fn jitter(&self, limit: Duration) -> Duration {
        let nanos = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX - 1);
        Duration::from_nanos(self.below(nanos.saturating_add(1)))
    }
}

/// Steele, Lea and Flood's SplitMix64. The state is a counter, which an atomic add advances:
/// no lock, and every draw of every clone is distinct.
fn split_mix(state: &AtomicU64) -> u64 {
    const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut z = state
        .fetch_add(GAMMA, Ordering::Relaxed)
        .wrapping_add(GAMMA);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            write!(text, "{byte:02x}").expect("writing to a string succeeds");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_sequence() {
        let draw = |seed| {
            let chance = Chance::seeded(seed);
            (
                chance.u64(),
                chance.uuid(),
                chance.suffix(5),
                chance.token(4),
            )
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn the_generator_is_split_mix_as_published() {
        let chance = Chance::seeded(1_234_567);
        let draws: Vec<u64> = (0..3).map(|_| chance.u64()).collect();
        assert_eq!(
            draws,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn draws_below_a_limit_reach_every_number_and_no_other() {
        let chance = Chance::seeded(1);
        let mut seen = [0_u32; 5];
        for _ in 0..500 {
            seen[usize::try_from(chance.below(5)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
        assert_eq!(chance.below(0), 0);
        assert_eq!(chance.below(1), 0);
    }

    #[test]
    fn uuids_are_version_four_and_suffixes_are_safe_in_names() {
        for chance in [Chance::system(), Chance::seeded(3)] {
            let uuid = chance.uuid();
            assert_eq!(uuid.len(), 36);
            assert_eq!(&uuid[14..15], "4");
            assert!("89ab".contains(&uuid[19..20]), "{uuid}");
            assert!(
                chance
                    .suffix(40)
                    .bytes()
                    .all(|c| SUFFIX_ALPHABET.contains(&c))
            );
            assert_eq!(chance.token(16).len(), 32);
        }
    }

    #[test]
    fn jitter_stays_within_its_limit() {
        let chance = Chance::seeded(9);
        let limit = Duration::from_millis(10);
        assert!((0..100).all(|_| chance.jitter(limit) <= limit));
        assert_eq!(chance.jitter(Duration::ZERO), Duration::ZERO);
    }
}
