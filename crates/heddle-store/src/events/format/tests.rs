//! Tests of the format: bytes back and forth, and the numbers that files of today depend on.

use super::*;

fn head() -> Head {
    Head {
        crc: payload_checksum(&[b"hel", b"lo"]),
        length: 5,
        chain: 0x1122_3344,
        offset: 9,
        at: 1_700_000_000_000_000_000,
        key: 77,
        stream: 3,
        index: 1,
        more: 2,
    }
}

#[test]
fn a_record_is_read_as_it_was_written() {
    let mut bytes = Vec::new();
    let crc = write_record(&mut bytes, 0xabcd_ef01, &head(), &[b"hel", b"lo"]);
    assert_eq!(bytes.len(), 64);
    assert_eq!(&bytes[56..], b"hello\0\0\0");
    let read = Head::decode(&bytes, 0xabcd_ef01).unwrap();
    assert_eq!(read, Head { crc, ..head() });
    assert!(read.verify(&bytes));
    assert_eq!((read.record_bytes(), read.write_first()), (64, 8));
    assert_eq!(Head::decode(&bytes, 1), None, "the mark of another log");
    assert_eq!(Head::decode(&bytes[..55], 0xabcd_ef01), None);
}

/// Files of this layout exist: when this changes, so does the number of the layout.
#[test]
fn the_layout_is_what_it_always_was() {
    let mut bytes = Vec::new();
    write_record(&mut bytes, 0xabcd_ef01, &head(), &[b"hel", b"lo"]);
    let header = SegmentHeader {
        mark: 5,
        chain: 6,
        first: 7,
    };
    let sums = [crc32c::crc32c(&bytes), crc32c::crc32c(&header.encode())];
    assert_eq!((LAYOUT, sums), (1, SUMS_OF_LAYOUT_1));
}

const SUMS_OF_LAYOUT_1: [u32; 2] = [2_457_116_945, 685_272_677];

#[test]
fn headers_and_trailers_are_read_as_written_and_no_flipped_bit_is_believed() {
    let header = SegmentHeader {
        mark: 5,
        chain: 6,
        first: 7,
    };
    let trailer = Trailer {
        mark: 5,
        chain: 6,
        first: 7,
        next: 8,
        records: 1,
        first_at: -1,
        last_at: 2,
        end: 128,
        tables: 128,
        keys: 3,
        marks: 4,
    };
    let (header_bytes, trailer_bytes) = (header.encode(), trailer.encode());
    assert_eq!(SegmentHeader::decode(&header_bytes), Decoded::Fine(header));
    assert_eq!(Trailer::decode(&trailer_bytes), Decoded::Fine(trailer));
    for bit in 0..header_bytes.len() * 8 {
        let mut hurt = header_bytes;
        hurt[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(SegmentHeader::decode(&hurt), Decoded::Damaged);
    }
    for bit in 0..trailer_bytes.len() * 8 {
        let mut hurt = trailer_bytes;
        hurt[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Trailer::decode(&hurt), Decoded::Damaged);
    }
}

#[test]
fn a_length_beyond_all_bounds_is_not_believed() {
    let mut bytes = Vec::new();
    let long = Head {
        length: u32::MAX,
        ..head()
    };
    write_record(&mut bytes, 1, &long, &[b"", b""]);
    assert_eq!(Head::decode(&bytes, 1), None);
}
