//! For the fuzzer: any bytes, taken for a line of the audit log.

use heddle_api::audit::AuditQuery;
use heddle_store::events::Record;
use jiff::Timestamp;

use super::{LAYOUT, decode, encode};

/// Any bytes are a line or are passed over, whatever layout they claim. A line is what would be written for it, and can be asked
/// about.
///
/// # Panics
/// When the promise does not hold.
pub fn line(soup: &[u8]) {
    for payload in [soup.to_vec(), [&[LAYOUT][..], soup].concat()] {
        let record = |payload: Vec<u8>| Record {
            offset: 7,
            at: Timestamp::UNIX_EPOCH,
            stream: 0,
            key: 0,
            payload: payload.into(),
        };
        let Some(line) = decode(&record(payload)) else {
            continue;
        };
        let written = [&[LAYOUT][..], &encode(&line.entry)].concat();
        assert_eq!(decode(&record(written)).as_ref(), Some(&line));
        assert!(AuditQuery::default().matches(&line));
    }
}
