//! No bytes make the readers of what is on disk panic or take more memory than there are bytes.

#![no_main]

use bytes::Bytes;
use heddle_mesh::envelope::Envelope;
use heddle_mesh::journal::{self, Snapshot};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(lines) = journal::decode(bytes) {
        let mut again = Vec::new();
        for record in journal::encode(&lines) {
            again.extend(record.payload);
        }
        assert_eq!(again.len(), bytes.len());
    }
    let shared = Bytes::copy_from_slice(bytes);
    drop(Envelope::decode(&shared));
    drop(Snapshot::decode(bytes));
});
