//! Promises that hold for any bytes found on a disk, for random tests and for fuzzing alike.
//!
//! No bytes make the readers of what is kept panic, or take more memory than there are bytes.

use bytes::Bytes;
use heddle_mesh::envelope::Envelope;
use heddle_mesh::journal::{self, Snapshot, SnapshotError};

/// Newer ones than this are added to those that are tried by themselves.
const LAYOUTS_MIN: u32 = 5;

/// Taken for a record of the journal, for an event with its envelope, and for a snapshot whose checksum holds.
pub(crate) fn disk(soup: &[u8]) {
    if let Ok(lines) = journal::decode(soup) {
        let again = journal::encode(&lines).into_iter();
        let length: usize = again.map(|record| record.payload.len()).sum();
        assert_eq!(length, soup.len());
    }
    drop(Envelope::decode(&Bytes::copy_from_slice(soup)));
    drop(Snapshot::decode(soup));
    for layout in 1_u32.. {
        let sum = heddle_mesh::log::checksum(soup);
        let whole = [
            b"heddleps",
            &layout.to_le_bytes()[..],
            &sum.to_le_bytes(),
            soup,
        ]
        .concat();
        match Snapshot::decode(&whole) {
            Ok(snapshot) => assert_eq!(Snapshot::decode(&snapshot.encode()), Ok(snapshot)),
            Err(SnapshotError::Damaged(_)) => {}
            Err(SnapshotError::Newer(found)) => {
                assert!(found == layout && layout > LAYOUTS_MIN, "{found}");
                break;
            }
        }
    }
}
