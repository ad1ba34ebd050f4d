//! Points in time as RFC 3339 writes them. They are checked and kept as they came, not converted.

/// Whether this is a date and a time of day with its distance from UTC, all of which exist.
pub(super) fn is_rfc3339(text: &str) -> bool {
    parse(text.as_bytes()).is_some()
}

fn parse(text: &[u8]) -> Option<()> {
    let (head, rest) = text.split_at_checked("2026-01-31T12:00:00".len())?;
    let separators = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')];
    if separators.iter().any(|(at, byte)| head[*at] != *byte) || !matches!(head[10], b'T' | b't') {
        return None;
    }
    let (year, month, day) = (
        number(&head[..4])?,
        number(&head[5..7])?,
        number(&head[8..10])?,
    );
    let (hour, minute, second) = (
        number(&head[11..13])?,
        number(&head[14..16])?,
        number(&head[17..])?,
    );
    let exists =
        (1..=days(year, month)?).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    let offset = offset(without_fraction(rest)?)?;
    // A leap second is the last of a day in UTC.
    let utc = (hour * 60 + minute - offset).rem_euclid(24 * 60);
    (exists && (second < 60 || utc == 24 * 60 - 1)).then_some(())
}

fn days(year: i32, month: i32) -> Option<i32> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => Some(31),
        4 | 6 | 9 | 11 => Some(30),
        2 => Some(if leap { 29 } else { 28 }),
        _ => None,
    }
}

fn without_fraction(rest: &[u8]) -> Option<&[u8]> {
    let Some(fraction) = rest.strip_prefix(b".") else {
        return Some(rest);
    };
    let digits = fraction
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    (digits > 0).then(|| &fraction[digits..])
}

/// Minutes east of UTC.
fn offset(zone: &[u8]) -> Option<i32> {
    let (sign, hours, minutes) = match zone {
        b"Z" | b"z" => return Some(0),
        [sign @ (b'+' | b'-'), hours @ .., b':', tens, ones] if hours.len() == 2 => {
            (*sign, number(hours)?, number(&[*tens, *ones])?)
        }
        _ => return None,
    };
    let distance = hours * 60 + minutes;
    (hours < 24 && minutes < 60).then_some(if sign == b'+' { distance } else { -distance })
}

fn number(digits: &[u8]) -> Option<i32> {
    digits.iter().try_fold(0, |number, byte| {
        byte.is_ascii_digit()
            .then(|| number * 10 + i32::from(*byte - b'0'))
    })
}
