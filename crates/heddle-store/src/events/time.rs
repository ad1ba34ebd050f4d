//! Time on disk: nanoseconds since 1970, which fit 64 bits until the year 2262.

use jiff::Timestamp;

pub(super) fn nanoseconds(at: Timestamp) -> i64 {
    let exact = at.as_nanosecond();
    i64::try_from(exact).unwrap_or(if exact < 0 { i64::MIN } else { i64::MAX })
}

pub(super) fn timestamp(nanoseconds: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(nanoseconds))
        .expect("64 bits of nanoseconds are in range")
}

/// In an order that unsigned numbers have too; what was before 1970 is one moment.
pub(super) fn nanoseconds_to_key(nanoseconds: i64) -> u64 {
    u64::try_from(nanoseconds).unwrap_or(0)
}
