//! Images that are not what they should be, and tombstones that are due.

use bytes::Bytes;

use super::*;

fn image(objects: &[(&str, u64)], meta: Meta) -> Image {
    let record = |(name, version): &(&str, u64)| {
        let (key, version) = (Key::new("things", "", name), ResourceVersion::new(*version));
        let facts = Facts::default();
        let record = format::encode_object(&key, version, version, &facts, (b"\"", b"\""));
        (Bytes::from(format::encode_key(&key)), record)
    };
    let objects = objects.iter().map(record).collect();
    Image {
        meta: format::encode_meta(&meta),
        objects,
        tombstones: Vec::new(),
    }
}

fn meta(version: u64, objects_count: u64) -> Meta {
    Meta {
        format: format::FORMAT,
        version: ResourceVersion::new(version),
        objects_count,
        ..Meta::default()
    }
}

fn refused(image: Image) -> String {
    restore(image, &Samples::default(), 0)
        .map(drop)
        .unwrap_err()
        .to_string()
}

#[test]
fn a_sound_image_is_restored() {
    let state = restore(
        image(&[("a", 1), ("b", 3)], meta(4, 2)),
        &Samples::default(),
        0,
    )
    .unwrap();
    assert_eq!((state.version.get(), state.objects_count()), (4, 2));
}

#[test]
fn missing_and_superfluous_records_are_noticed() {
    assert_eq!(
        refused(image(&[("a", 1)], meta(4, 2))),
        "objects: 1 found, 2 expected"
    );
    assert_eq!(
        refused(image(&[("a", 1)], meta(4, 0))),
        "objects: 1 found, 0 expected"
    );
    let tombstones = Meta {
        tombstones_count: 1,
        ..meta(4, 0)
    };
    assert_eq!(
        refused(image(&[], tombstones)),
        "tombstones: 0 found, 1 expected"
    );
}

#[test]
fn an_object_from_the_future_is_noticed() {
    assert_eq!(
        refused(image(&[("a", 5)], meta(4, 1))),
        "things/a has version 5, beyond the last one, 4"
    );
}

#[test]
fn a_record_in_the_place_of_another_is_noticed() {
    let mut swapped = image(&[("a", 1), ("b", 3)], meta(4, 2));
    let (first, second) = (swapped.objects[0].1.clone(), swapped.objects[1].1.clone());
    (swapped.objects[0].1, swapped.objects[1].1) = (second, first);
    assert_eq!(refused(swapped), "the checksum of a record does not fit");
}

#[test]
fn a_newer_format_is_refused_by_its_number() {
    let newer = Meta {
        format: format::FORMAT + 1,
        ..meta(4, 0)
    };
    assert!(matches!(
        restore(image(&[], newer), &Samples::default(), 0),
        Err(Unreadable::Newer(2))
    ));
}

#[test]
fn names_of_resources_are_shared_between_objects() {
    let state = restore(
        image(&[("a", 1), ("b", 3)], meta(4, 2)),
        &Samples::default(),
        0,
    )
    .unwrap();
    let objects: Vec<_> = state.all().collect();
    assert!(Arc::ptr_eq(
        &objects[0].key.resource,
        &objects[1].key.resource
    ));
}

#[test]
fn text_in_tombstones_is_valid_json() {
    let mut json = String::new();
    push_json(&mut json, "a\"b\\c\u{1}\n€");
    assert_eq!(json, r#""a\"b\\c\u0001\u000a€""#);
}

#[test]
fn tombstones_go_by_count_and_by_age_oldest_first() {
    let mut tombstone_set = TombstoneSet::default();
    for number in 1..=5 {
        let version = ResourceVersion::new(number);
        let key = Key::new("things", "", "x");
        let seconds = i64::try_from(number).unwrap() * 10;
        let tombstone = Tombstone {
            version,
            created: version,
            seconds,
            key,
            uid: Arc::default(),
            labels: Vec::new(),
        };
        tombstone_set
            .tombstones
            .insert(version, Arc::new(tombstone));
    }
    let overdue = |count_max, seconds_max, added, now| -> Vec<u64> {
        let window = Window {
            count_max,
            seconds_max,
        };
        tombstone_set
            .overdue(window, added, now)
            .into_iter()
            .map(ResourceVersion::get)
            .collect()
    };
    assert_eq!(overdue(10, 100, 1, 60), [0; 0]);
    assert_eq!(overdue(5, 100, 2, 60), [1, 2]);
    assert_eq!(overdue(10, 30, 1, 60), [1, 2]);
    assert_eq!(overdue(0, 100, 1, 60), [1, 2, 3, 4, 5]);
    assert_eq!(overdue(10, 30, 1, -60), [0; 0], "a clock that was set back");
}
