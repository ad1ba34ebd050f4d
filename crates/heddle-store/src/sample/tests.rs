//! Whatever is packed comes back, and what is alike takes little.

use proptest::prelude::*;

use super::*;

fn unpacked(packed: &Packed) -> Vec<u8> {
    let mut text = b"before".to_vec();
    packed.unpack(&mut text);
    text.split_off(6)
}

/// Texts that have much in common, as objects do, and some that have not.
fn texts() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let word = prop_oneof![
        Just(b"\"lastTransitionTime\":\"2026-01-01T00:00:00Z\",".to_vec()),
        Just(b"{\"type\":\"Ready\",\"status\":\"False\"}".to_vec()),
        Just(b"aaaaaaaaaaaaaaaaaaaaaaaaa".to_vec()),
        prop::collection::vec(any::<u8>(), 0..12),
    ];
    let text = prop::collection::vec(word, 0..40).prop_map(|words| words.concat());
    prop::collection::vec(text, 1..12)
}

proptest! {
    #[test]
    fn every_text_comes_back_whatever_became_of_its_sample(texts in texts()) {
        let (samples, resource) = (Samples::default(), Arc::from("things"));
        let packed: Vec<_> = texts.iter().map(|text| samples.pack(&resource, text)).collect();
        for (text, packed) in texts.iter().zip(&packed) {
            prop_assert_eq!(&unpacked(packed), text);
            prop_assert_eq!(packed.len(), text.len());
            prop_assert_eq!(&unpacked(&Packed::alone(text)), text);
        }
    }

    #[test]
    fn places_are_found_again(from in 0_usize..100_000, to in 0_usize..100_000) {
        prop_assert_eq!(displaced(from, displacement(from, to)), to);
    }
}

/// About as an object looks.
fn object(number: usize) -> Vec<u8> {
    let condition = |name: &str| {
        format!(
            r#"{{"lastTransitionTime":"2026-01-01T00:00:{:02}Z","message":"{name} of thing-{number} is not there yet","status":"False","type":"{name}"}}"#,
            number % 60
        )
    };
    let conditions = ["Allowed", "SourceReady", "BrokerReady", "Ready"].map(condition);
    format!(
        r#"{{"kind":"Thing","metadata":{{"name":"thing-{number}","uid":"{:032x}"}},"status":{{"conditions":[{}]}}}}"#,
        (number as u128 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835),
        conditions.join(",")
    )
    .into_bytes()
}

#[test]
fn what_is_alike_takes_a_fraction() {
    let (samples, resource) = (Samples::default(), Arc::from("things"));
    samples.pack(&resource, &object(0));
    for number in 1..200 {
        let text = object(number);
        let packed = samples.pack(&resource, &text);
        let kept = packed.kept_bytes();
        assert!(kept * 5 < text.len(), "{kept} of {}", text.len());
    }
}

#[test]
fn a_sample_that_many_are_unlike_is_replaced() {
    let (samples, resource) = (Samples::default(), Arc::from("things"));
    samples.pack(&resource, b"{\"kind\":\"Thing\",\"spec\":{}}");
    let kept = |number| samples.pack(&resource, &object(number)).kept_bytes();
    let first = kept(0);
    let last = (1..20).map(kept).last().unwrap();
    assert!(last * 2 < first, "{last} against {first}");
}

#[test]
fn texts_that_have_nothing_in_common_do_not_pile_up_samples() {
    let (samples, resource) = (Samples::default(), Arc::<str>::from("things"));
    let mut state = 1_u64;
    let mut noise = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    let mut chosen = Vec::new();
    for _ in 0..200 {
        let text: Vec<u8> = (0..4096).map(|_| noise()).collect();
        let packed = samples.pack(&resource, &text);
        assert!(packed.kept_bytes() <= text.len() + 8);
        let sample = samples.model(&resource).sample.clone();
        if !chosen.iter().any(|known| Arc::ptr_eq(known, &sample)) {
            chosen.push(sample);
        }
    }
    let bytes: usize = chosen.iter().map(|sample| sample.0.len()).sum();
    assert!(bytes * 4 < 200 * 4096, "{bytes} bytes of samples");
}
