//! What the probe from outside proves: whether a publisher elsewhere could publish now. Pure.
//!
//! A certificate is wrong at once, since trying again does not change it. Anything else may pass, so it has to fail a few
//! times. Whether the path behind the listener works is what heartbeats say; this says nothing about it.

use heddle_api::dataplane::{EdgeFailure, EdgeReading};
use heddle_api::health::PlaneHealth;
use heddle_api::health::catalogue;

use super::judge::{MISSES_MAX, PlaneDetails as _, wrong};

/// What is wrong at the edge, or cannot be known, if anything.
pub(super) fn judge(reading: &EdgeReading) -> Option<PlaneHealth> {
    if let Some((failure, why)) = &reading.failed {
        let (fault, object, certain) = match failure {
            EdgeFailure::CertificateExpired => {
                (&catalogue::EDGE_CERTIFICATE_EXPIRED, "certificate", true)
            }
            EdgeFailure::CertificateUntrusted => {
                (&catalogue::EDGE_CERTIFICATE_UNTRUSTED, "certificate", true)
            }
            EdgeFailure::Refused => (&catalogue::EDGE_REFUSES, "listener", false),
            EdgeFailure::TimedOut => (&catalogue::EDGE_TIMED_OUT, "listener", false),
            EdgeFailure::Unreachable => (&catalogue::EDGE_UNREACHABLE, "listener", false),
        };
        if certain || reading.misses >= MISSES_MAX {
            let object = format!("{object}/{}", reading.listener);
            return Some(wrong(fault).about(object).seen(why));
        }
    }
    let fresh = reading.interval.saturating_mul(MISSES_MAX);
    let proven = reading.succeeded.is_some_and(|age| age <= fresh);
    let unproven = || {
        let object = format!("listener/{}", reading.listener);
        wrong(&catalogue::EDGE_UNPROVEN).about(object)
    };
    (!proven).then(unproven)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn seen(
        succeeded: Option<u64>,
        failed: Option<EdgeFailure>,
        misses: u32,
    ) -> Option<(String, String)> {
        let reading = EdgeReading {
            listener: "events.example:443".to_owned(),
            interval: Duration::from_secs(30),
            succeeded: succeeded.map(Duration::from_secs),
            failed: failed.map(|failure| (failure, "it was seen".to_owned())),
            misses,
        };
        let found = judge(&reading)?;
        assert_eq!(found.hop.as_deref(), Some("edge"));
        Some((found.reason, found.object.unwrap_or_default()))
    }

    #[test]
    fn what_is_wrong_at_the_edge_is_named_once_it_is_certain() {
        use EdgeFailure::{
            CertificateExpired, CertificateUntrusted, Refused, TimedOut, Unreachable,
        };
        assert_eq!(seen(Some(5), None, 0), None);
        let certificate = "certificate/events.example:443";
        let listener = "listener/events.example:443";
        for (failure, misses, code, object) in [
            (CertificateExpired, 1, "EdgeCertificateExpired", certificate),
            (
                CertificateUntrusted,
                1,
                "EdgeCertificateUntrusted",
                certificate,
            ),
            (Refused, 3, "EdgeRefuses", listener),
            (TimedOut, 3, "EdgeTimedOut", listener),
            (Unreachable, 3, "EdgeUnreachable", listener),
        ] {
            let expected = Some((code.to_owned(), object.to_owned()));
            assert_eq!(seen(Some(5), Some(failure), misses), expected);
        }
        for passing in [Refused, TimedOut, Unreachable] {
            assert_eq!(seen(Some(5), Some(passing), 2), None, "{passing:?}");
        }
    }

    #[test]
    fn what_was_not_proven_lately_is_not_known() {
        let unproven = Some((
            "EdgeUnproven".to_owned(),
            "listener/events.example:443".to_owned(),
        ));
        assert_eq!(seen(None, None, 0), unproven);
        assert_eq!(seen(Some(91), None, 0), unproven);
        assert_eq!(seen(None, Some(EdgeFailure::Refused), 1), unproven);
        assert_eq!(seen(Some(90), None, 0), None);
    }
}
