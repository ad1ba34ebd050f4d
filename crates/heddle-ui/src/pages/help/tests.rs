//! Whatever has a name that people are shown has a page that explains it.

use heddle_api::checks;
use heddle_api::health::{alerts::ALERTS, catalogue};

use super::entries;
use crate::links::PageLinks;

fn said(code: &str) -> String {
    let found = entries::of(code, &PageLinks::new(""));
    assert_eq!(!found.is_empty(), entries::is_known(code), "{code}");
    found.into_iter().map(maud::Markup::into_string).collect()
}

#[test]
fn every_alert_code_check_and_reason_is_explained() {
    for alert in ALERTS {
        let page = said(alert.name);
        for code in alert.codes {
            assert!(page.contains(&format!("/ui/help/{code}")), "{page}");
        }
        assert!(page.contains(alert.urgency.word()), "{page}");
        assert!(!page.contains("{{"), "{page}");
    }
    for fault in catalogue::ALL {
        assert!(said(fault.code).contains("Remedy"), "{}", fault.code);
    }
    for check in checks::ALL {
        assert!(said(check.id).contains("heddle doctor"), "{}", check.id);
    }
    let reasons = entries::reason_names();
    assert!(reasons.contains("NotYetObserved") && reasons.len() > 20);
    for reason in reasons {
        let page = said(reason);
        assert!(page.contains("reason of a condition"), "{reason}: {page}");
    }
    assert!(said("Nonsense").is_empty());
}

#[test]
fn a_reason_is_told_with_the_object_and_the_condition_that_give_it() {
    let page = said("BrokerNotReady");
    for part in ["EventFlow", "When it holds", "heddle get", "NAME -n NS"] {
        assert!(page.contains(part), "{part} in {page}");
    }
}
