//! Durations for people: two or three significant figures, exactly as kubectl prints them.

use jiff::{SignedDuration, Timestamp};

/// How long ago something was, or that it is not known.
pub(super) fn since(time: Option<Timestamp>, now: Timestamp) -> String {
    time.map_or_else(
        || "<unknown>".to_owned(),
        |time| human_duration(now.duration_since(time)),
    )
}

/// `45s`, `5m30s`, `12m`, `3h20m`, `2d4h`, `12d`, `2y100d`. Clocks that differ by a second are no error, more is `<invalid>`.
pub(crate) fn human_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let (days, years) = (hours / 24, hours / 24 / 365);
    let pair = |whole: i64, unit: &str, rest: i64, rest_unit: &str| match rest {
        0 => format!("{whole}{unit}"),
        rest => format!("{whole}{unit}{rest}{rest_unit}"),
    };
    match seconds {
        ..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, "m", seconds % 60, "s"),
        _ if minutes < 3 * 60 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 8 * 24 => pair(days, "d", hours % 24, "h"),
        _ if hours < 2 * 365 * 24 => format!("{days}d"),
        _ if hours < 8 * 365 * 24 => pair(years, "y", days % 365, "d"),
        _ => format!("{years}y"),
    }
}
