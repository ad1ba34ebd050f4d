use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Writes what a client sends: the independent half of a round trip.
#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn varint(mut self, mut number: u64) -> Self {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
        self
    }

    fn number(self, field: u64, value: i64) -> Self {
        self.varint(field << 3).varint(value.cast_unsigned())
    }

    fn bytes(self, field: u64, value: impl AsRef<[u8]>) -> Self {
        let value = value.as_ref();
        let mut writer = self.varint(field << 3 | 2).varint(value.len() as u64);
        writer.0.extend_from_slice(value);
        writer
    }

    fn message(self, field: u64, value: Self) -> Self {
        self.bytes(field, value.0)
    }

    fn entry(self, field: u64, key: &str, value: impl AsRef<[u8]>) -> Self {
        self.message(field, Self::default().bytes(1, key).bytes(2, value))
    }
}

fn new() -> Writer {
    Writer::default()
}

fn body(api_version: &str, kind: &str, object: Writer) -> Vec<u8> {
    let envelope = new()
        .message(1, new().bytes(1, api_version).bytes(2, kind))
        .message(2, object)
        .bytes(3, "")
        .bytes(4, "");
    [MAGIC, &envelope.0].concat()
}

#[track_caller]
fn check(api_version: &str, kind: &str, object: Writer, expected: Value) {
    let mut expected = expected;
    expected["apiVersion"] = json!(api_version);
    expected["kind"] = json!(kind);
    assert_eq!(decode(&body(api_version, kind, object)), Ok(expected));
}

/// Metadata as Go sends it: every plain field, set or not.
fn metadata(name: &str) -> Writer {
    new()
        .bytes(1, name)
        .bytes(2, "")
        .bytes(3, "")
        .bytes(4, "")
        .bytes(5, "")
        .bytes(6, "")
        .number(7, 0)
        .bytes(8, "")
}

#[test]
fn objects_arrive_as_their_json() {
    check(
        "v1",
        "Namespace",
        new()
            .message(1, metadata("n"))
            .message(2, new())
            .message(3, new().bytes(1, "")),
        json!({"metadata": {"name": "n"}}),
    );
    check(
        "v1",
        "ConfigMap",
        new()
            .message(1, metadata("c").entry(11, "l", "1").entry(12, "a", "2"))
            .entry(2, "k", "v")
            .entry(2, "", "")
            .entry(3, "b", [0xff])
            .number(4, 0),
        json!({"metadata": {"name": "c", "labels": {"l": "1"}, "annotations": {"a": "2"}}, "data": {"k": "v", "": ""},
               "binaryData": {"b": "/w=="}, "immutable": false}),
    );
    check(
        "v1",
        "Secret",
        new()
            .message(1, metadata("s"))
            .entry(2, "k", "v")
            .bytes(3, "Opaque")
            .entry(4, "p", "plain"),
        json!({"metadata": {"name": "s"}, "data": {"k": "dg=="}, "type": "Opaque", "stringData": {"p": "plain"}}),
    );
    let owner = new()
        .bytes(1, "K")
        .bytes(3, "o")
        .bytes(4, "u")
        .bytes(5, "v1")
        .number(6, 1)
        .number(7, 0);
    let managed = new()
        .bytes(1, "m")
        .bytes(2, "Update")
        .bytes(3, "v1")
        .message(4, new().number(1, 1).number(2, 0))
        .bytes(6, "FieldsV1")
        .message(7, new().bytes(1, r#"{"f:a":{}}"#))
        .bytes(8, "");
    check(
        "coordination.k8s.io/v1",
        "Lease",
        new()
            .message(
                1,
                metadata("l")
                    .message(13, owner)
                    .bytes(14, "f")
                    .message(17, managed),
            )
            .message(
                2,
                new()
                    .bytes(1, "me")
                    .number(2, 15)
                    .message(4, new().number(1, 1_700_000_000).number(2, 123_456_000))
                    .number(5, 0),
            ),
        json!({
            "metadata": {"name": "l", "finalizers": ["f"],
                "ownerReferences": [{"kind": "K", "name": "o", "uid": "u", "apiVersion": "v1", "controller": true, "blockOwnerDeletion": false}],
                "managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1", "time": "1970-01-01T00:00:01Z",
                                   "fieldsType": "FieldsV1", "fieldsV1": {"f:a": {}}}]},
            "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2023-11-14T22:13:20.123456Z", "leaseTransitions": 0},
        }),
    );
    check(
        "v1",
        "Event",
        new()
            .message(1, metadata("e"))
            .message(2, new().bytes(1, "Widget").bytes(3, "w"))
            .bytes(3, "Ready")
            .message(5, new().bytes(1, "ctl"))
            .message(6, new().number(1, 5))
            .number(8, 2)
            .message(11, new().number(1, 3)),
        json!({"metadata": {"name": "e"}, "involvedObject": {"kind": "Widget", "name": "w"}, "reason": "Ready",
               "source": {"component": "ctl"}, "firstTimestamp": "1970-01-01T00:00:05Z", "count": 2, "series": {"count": 3}}),
    );
    check(
        "authorization.k8s.io/v1",
        "SelfSubjectAccessReview",
        new()
            .message(1, metadata(""))
            .message(
                2,
                new().message(
                    1,
                    new()
                        .bytes(1, "default")
                        .bytes(2, "get")
                        .bytes(5, "widgets"),
                ),
            )
            .message(3, new().number(1, 0)),
        json!({"spec": {"resourceAttributes": {"namespace": "default", "verb": "get", "resource": "widgets"}}}),
    );
}

#[test]
fn an_option_set_to_zero_is_not_the_same_as_none() {
    check(
        "meta.k8s.io/v1",
        "DeleteOptions",
        new()
            .number(1, 0)
            .message(2, new().bytes(1, "u"))
            .number(3, 0)
            .bytes(4, "Foreground")
            .bytes(5, "All"),
        json!({"gracePeriodSeconds": 0, "preconditions": {"uid": "u"}, "orphanDependents": false, "propagationPolicy": "Foreground", "dryRun": ["All"]}),
    );
    check("v1", "DeleteOptions", new(), json!({}));
    check(
        "v1",
        "DeleteOptions",
        new().number(1, -1),
        json!({"gracePeriodSeconds": -1}),
    );
}

#[test]
fn fields_nobody_knows_are_skipped() {
    let mut object = new()
        .message(1, metadata("c"))
        .number(99, 7)
        .bytes(98, "x")
        .varint(97 << 3 | 1);
    object.0.extend([0; 8]);
    let mut object = object.varint(96 << 3 | 5);
    object.0.extend([0; 4]);
    check(
        "v1",
        "ConfigMap",
        object,
        json!({"metadata": {"name": "c"}}),
    );
}

#[test]
fn what_cannot_be_decoded_is_refused() {
    let malformed = |body: &[u8], problem| assert_eq!(decode(body), Err(Error::Malformed(problem)));
    malformed(b"", "the magic number is missing");
    malformed(b"{}", "the magic number is missing");
    malformed(b"k8s\0\x0a\xff\x01", "a length or number exceeds the body");
    malformed(
        b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        "a length or number exceeds the body",
    );
    malformed(b"k8s\0\x0b", "unknown wire type");
    malformed(b"k8s\0\x00\x00", "a field has no number");
    malformed(
        &body("v1", "ConfigMap", new().number(1, 1)),
        "a field has the wrong wire type",
    );
    malformed(
        &body("v1", "ConfigMap", new().entry(2, "k", [0xff])),
        "a text is not UTF-8",
    );
    malformed(
        &body("v1", "Event", new().message(6, new().number(1, i64::MAX))),
        "a time is out of range",
    );
    malformed(
        &body(
            "v1",
            "Secret",
            new().message(1, new().message(17, new().message(7, new().bytes(1, "{")))),
        ),
        "managed fields are not JSON",
    );
    assert_eq!(
        decode(&body("v1", "Pod", new())).unwrap_err().to_string(),
        "cannot decode v1 Pod from protobuf; send application/json"
    );
}

fn any_kind() -> impl Strategy<Value = (&'static str, &'static str)> {
    prop::sample::select(vec![
        ("v1", "Namespace"),
        ("v1", "ConfigMap"),
        ("v1", "Secret"),
        ("v1", "Event"),
        ("v1", "DeleteOptions"),
        ("coordination.k8s.io/v1", "Lease"),
        ("authorization.k8s.io/v1", "SelfSubjectAccessReview"),
    ])
}

proptest! {
    #[test]
    fn no_bytes_hurt(bytes in prop::collection::vec(any::<u8>(), 0..200), (api_version, kind) in any_kind()) {
        drop(decode(&bytes));
        drop(decode(&[MAGIC, &bytes].concat()));
        drop(decode(&body(api_version, kind, Writer(bytes))));
    }

    /// Bytes that are nearly right reach further than noise does.
    #[test]
    fn no_damage_hurts((api_version, kind) in any_kind(), at in 0..200usize, byte in any::<u8>(), cut in 0..200usize) {
        let object = new()
            .message(1, metadata("n").entry(11, "l", "1").bytes(14, "f"))
            .message(2, new().bytes(1, "a").number(2, 1).message(3, new().number(1, 5)));
        let mut damaged = body(api_version, kind, object);
        let length = damaged.len();
        damaged[at % length] = byte;
        drop(decode(&damaged));
        drop(decode(&damaged[..cut % length]));
    }

    #[test]
    fn any_entries_come_through(entries in prop::collection::btree_map(".{0,8}", ".{0,8}", 0..5)) {
        let mut object = new().message(1, metadata("c"));
        for (key, value) in &entries {
            object = object.entry(2, key, value);
        }
        let decoded = decode(&body("v1", "ConfigMap", object)).unwrap();
        let expected = if entries.is_empty() { Value::Null } else { json!(entries) };
        prop_assert_eq!(&decoded["data"], &expected);
    }
}
