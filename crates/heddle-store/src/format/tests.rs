//! Records come back as they were written, or not at all.

use proptest::prelude::*;

use super::*;

fn text() -> impl Strategy<Value = String> {
    "[ -~äß\u{1F600}]{0,20}"
}

fn key() -> impl Strategy<Value = Key> {
    (text(), text(), text())
        .prop_map(|(resource, namespace, name)| Key::new(&resource, &namespace, &name))
}

fn facts() -> impl Strategy<Value = Facts> {
    let labels = prop::collection::vec((text(), text()), 0..4);
    let owners = prop::collection::vec(text(), 0..4);
    (text(), labels, owners, any::<bool>()).prop_map(|(uid, labels, owners, deleting)| Facts {
        uid: uid.into(),
        labels,
        owners: owners.into_iter().map(Into::into).collect(),
        deleting,
    })
}

fn decode(key: &[u8], record: &[u8]) -> Result<Object, Damage> {
    decode_object(key, record, &Samples::default())
}

fn version() -> impl Strategy<Value = ResourceVersion> {
    any::<u64>().prop_map(ResourceVersion::new)
}

proptest! {
    #[test]
    fn an_object_comes_back_with_its_version_inside(
        key in key(), facts in facts(), version in version(), created in version(),
        before in prop::collection::vec(any::<u8>(), 0..200), after in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let record = encode_object(&key, version, created, &facts, (&before, &after));
        let json = [&before[..], version.to_string().as_bytes(), &after[..]].concat();
        let object = decode(&encode_key(&key), &record).unwrap();
        prop_assert_eq!(&object.json()[..], &json[..]);
        prop_assert_eq!(
            (&object.key, object.version, object.created, &*object.facts),
            (&key, version, created, &facts)
        );
        prop_assert_eq!(reencode_object(&object), record);
    }

    #[test]
    fn a_tombstone_comes_back(
        version in version(), created in version(), seconds in any::<i64>(), key in key(), facts in facts(),
    ) {
        let tombstone = Tombstone { version, created, seconds, key, uid: facts.uid, labels: facts.labels };
        let record = encode_tombstone(&tombstone);
        prop_assert_eq!(decode_tombstone(version.get(), &record), Ok(tombstone));
        prop_assert_eq!(decode_tombstone(version.get() ^ 1, &record), Err(Damage::Checksum));
    }

    #[test]
    fn keys_come_back_and_differ_when_they_differ(one in key(), other in key()) {
        prop_assert_eq!(decode_key(&encode_key(&one)), Ok(one.clone()));
        prop_assert_eq!(encode_key(&one) == encode_key(&other), one == other);
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let sealed = Encoder { bytes: [&[0; HEADER_BYTES][..], &bytes].concat() }.seal(&[0; 6]);
        for record in [Bytes::from(bytes), sealed] {
            drop(decode(&[0; 6], &record));
            drop(decode_tombstone(1, &record));
            drop(decode_meta(&record));
            drop(decode_key(&record));
        }
    }

    #[test]
    fn a_record_under_another_key_or_cut_short_is_noticed(one in key(), other in key(), cut in 0..60_usize) {
        prop_assume!(one != other);
        let version = ResourceVersion::new(7);
        let record = encode_object(&one, version, version, &Facts::default(), (b"{\"", b"\"}"));
        prop_assert_eq!(decode(&encode_key(&other), &record), Err(Damage::Checksum));
        let short = record.slice(..cut.min(record.len() - 1));
        prop_assert_eq!(decode(&encode_key(&one), &short), Err(Damage::Short));
    }
}

/// Made by another program from the drawing in the header of this module.
#[test]
fn the_bytes_of_the_first_format_stay_what_they_are() {
    let meta = Meta {
        format: 1,
        version: ResourceVersion::new(300),
        horizon: ResourceVersion::new(7),
        objects_count: 2,
        tombstones_count: 1,
    };
    let bytes = "012400000094981168\
        010000002c01000000000000070000000000000002000000000000000100000000000000";
    assert_eq!(hex(&encode_meta(&meta)), bytes);

    let (version, created) = (ResourceVersion::new(3), ResourceVersion::new(3));
    let facts = Facts {
        uid: "u".into(),
        labels: vec![("k".to_owned(), "v".to_owned())],
        owners: vec!["o".into()],
        deleting: true,
    };
    let key = Key::new("r", "n", "m");
    let record = encode_object(&key, version, created, &facts, (b"{\"", b"\"}"));
    let bytes = "01360000007d9a405d0300000000000000030000000000000001\
        010000007501000000010000006b010000007601000000010000006f050000007b2233227d";
    assert_eq!(hex(&record), bytes);

    let (version, uid) = (ResourceVersion::new(9), "u".into());
    let tombstone = Tombstone {
        version,
        created,
        seconds: 1_700_000_000,
        key,
        uid,
        labels: Vec::new(),
    };
    let bytes = "013000000009e4ec6a0900000000000000030000000000000000f1536500000000\
        0100000072010000006e010000006d010000007500000000";
    assert_eq!(hex(&encode_tombstone(&tombstone)), bytes);
}

#[test]
fn of_a_newer_format_only_the_number_is_read() {
    let mut encoder = Encoder::with_capacity(8);
    encoder.bytes.extend_from_slice(&(FORMAT + 1).to_le_bytes());
    encoder.bytes.extend_from_slice(b"who knows");
    let meta = decode_meta(&encoder.seal(b"meta")).unwrap();
    assert_eq!(meta.format, FORMAT + 1);
}

#[test]
fn an_unknown_layout_is_named() {
    let mut record = encode_meta(&Meta::default()).to_vec();
    record[0] = 9;
    assert_eq!(decode_meta(&record), Err(Damage::Layout(9)));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
