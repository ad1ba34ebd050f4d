//! For the fuzzer: any bytes, taken for what a registry says.

use std::collections::BTreeMap;

use base64::Engine as _;

use super::address::Address;
use super::reference::Reference;
use super::{auth, helm, label};

/// Any text as the description of a bundle, as it is and packed into a label.
///
/// # Panics
/// When the promise does not hold.
pub fn label(soup: &[u8]) {
    let packed = base64::engine::general_purpose::STANDARD.encode(soup);
    let text = String::from_utf8_lossy(soup).into_owned();
    for said in [packed, text] {
        let [name, _] = label::DESCRIPTIONS;
        let labels = BTreeMap::from([(name.to_owned(), said.clone())]);
        match label::describe(&labels, "v1.2.3") {
            Err(why) => assert!(!why.is_empty()),
            Ok(described) => assert!(described.is_some_and(|it| it.version.is_some())),
        }
        let labels = BTreeMap::from([("com.redhat.apb.runtime".to_owned(), said)]);
        assert_eq!(label::describe(&labels, "latest"), Ok(None));
    }
}

/// Any bytes as the index of a repository of charts.
///
/// # Panics
/// When the promise does not hold.
pub fn chart_index(soup: &[u8]) {
    if let Ok(index) = helm::index::read(soup) {
        for chart in index.charts.values() {
            let newest_first =
                |a: &helm::index::Release, b: &helm::index::Release| a.version >= b.version;
            assert!(chart.releases.is_sorted_by(newest_first));
        }
    }
}

/// Any text as a challenge, as an address and as the name of an image.
///
/// # Panics
/// When the promise does not hold.
pub fn answer(soup: &[u8]) {
    let Ok(text) = std::str::from_utf8(soup) else {
        return;
    };
    drop(auth::challenge(text));
    if let Ok(address) = Address::configured(text) {
        let shown = address.to_string();
        assert_eq!(Address::configured(&shown), Ok(address), "{shown}");
    }
    drop(Reference::parse(text));
}
