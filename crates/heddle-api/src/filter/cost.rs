//! What a filter costs for each event that it is asked about.
//!
//! The unit is one condition: an attribute found among others and compared with a text of the filter's own, which takes at
//! most a microsecond. Where an attribute may have to be read to its end, however long it is, that is counted as
//! [`READ_COST`] conditions. So a cost says how long the longest event keeps the filter busy, and there is nothing whose
//! cost grows faster than the event does.

/// What reading an attribute to its end costs: 32 KiB, the longest there is, are read in about as many microseconds.
pub const READ_COST: u32 = 32;

/// The most that the filters of one object may cost together: 64 times reading an attribute, or 2,048 simple conditions.
pub const FILTER_COST_MAX: u32 = 2048;

/// The most that the filters of one namespace may cost one event together. Each event is matched before the next one, be it
/// of another namespace, so this is what others may have to wait for at worst: about ten milliseconds.
pub const NAMESPACE_COST_MAX: u32 = 8192;

/// The fault of filters that cost too much.
pub(super) fn too_much(cost: u32) -> String {
    format!(
        "costs {cost} for each event, and no more than {FILTER_COST_MAX} is allowed: a condition costs 1, and {READ_COST} where \
         an attribute has to be read to its end (LIKE with something between two %, functions, comparing attributes with each \
         other); use fewer of those, or several Triggers"
    )
}
