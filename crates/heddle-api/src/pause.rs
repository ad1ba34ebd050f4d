//! A pause: events of a consumer are kept and not sent, because somebody said so in its annotations.
//!
//! ```text
//!   heddle.dev/paused: "true"       and, if they are known,  heddle.dev/paused-until   -by   -reason
//! ```
//! A pause with a time is over when the wall clock shows it. Whether it is, is for whoever has a clock to ask.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::well_known::annotation;

/// What of a name or a reason is repeated to people.
const SHOWN_CHARS_MAX: usize = 200;

/// Nothing is sent for now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeliveryPause {
    /// `None` until somebody resumes.
    pub until: Option<Timestamp>,
    pub by: Option<String>,
    pub reason: Option<String>,
}

impl DeliveryPause {
    /// Reads annotations. `fault` is told about what makes no sense; a time that cannot be read ends no pause.
    pub fn read(
        annotations: Option<&BTreeMap<String, String>>,
        mut fault: impl FnMut(String),
    ) -> Option<Self> {
        let annotations = annotations?;
        match annotations.get(annotation::PAUSED)?.parse() {
            Ok(true) => {}
            Ok(false) => return None,
            Err(_) => {
                let (name, value) = (annotation::PAUSED, &annotations[annotation::PAUSED]);
                fault(format!(
                    "annotation {name} is {value:?}, wanted is true or false; it is not taken into account"
                ));
                return None;
            }
        }
        let until = annotations.get(annotation::PAUSED_UNTIL);
        let until = until.and_then(|value| {
            let until = value.parse().ok();
            if until.is_none() {
                let name = annotation::PAUSED_UNTIL;
                fault(format!(
                    "annotation {name} is {value:?}, wanted is a time in RFC 3339; it stays paused until somebody resumes it"
                ));
            }
            until
        });
        let text = |name| {
            let text: String = annotations.get(name).map(String::as_str)?.trim().into();
            let shown: String = text.chars().take(SHOWN_CHARS_MAX).collect();
            (!shown.is_empty()).then_some(shown)
        };
        Some(Self {
            until,
            by: text(annotation::PAUSED_BY),
            reason: text(annotation::PAUSED_REASON),
        })
    }

    /// Whether it still holds.
    #[must_use]
    pub fn holds_at(&self, now: Timestamp) -> bool {
        self.until.is_none_or(|until| now < until)
    }

    /// Who, until when and why, as far as they are known: `it is paused by ada until …: …`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let mut words = "it is paused".to_owned();
        if let Some(by) = &self.by {
            words.push_str(&format!(" by {by}"));
        }
        if let Some(until) = self.until {
            words.push_str(&format!(" until {until}"));
        }
        if let Some(reason) = &self.reason {
            words.push_str(&format!(": {reason}"));
        }
        words
    }

    /// The merge patch that pauses an object like this.
    #[must_use]
    pub fn patch(&self) -> Value {
        json!({"metadata": {"annotations": {
            (annotation::PAUSED): "true",
            (annotation::PAUSED_UNTIL): self.until.map(|until| until.to_string()),
            (annotation::PAUSED_BY): self.by,
            (annotation::PAUSED_REASON): self.reason,
        }}})
    }

    /// The merge patch that ends a pause.
    #[must_use]
    pub fn end_patch() -> Value {
        let annotations: serde_json::Map<String, Value> = [
            annotation::PAUSED,
            annotation::PAUSED_UNTIL,
            annotation::PAUSED_BY,
            annotation::PAUSED_REASON,
        ]
        .into_iter()
        .map(|name| (name.to_owned(), Value::Null))
        .collect();
        json!({"metadata": {"annotations": annotations}})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(annotations: &[(&str, &str)]) -> (Option<DeliveryPause>, Vec<String>) {
        let annotations = annotations
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let mut faults = Vec::new();
        let pause = DeliveryPause::read(Some(&annotations), |fault| faults.push(fault));
        (pause, faults)
    }

    #[test]
    fn a_pause_is_asked_for_by_one_annotation_and_explained_by_three() {
        let until = ("heddle.dev/paused-until", "2026-03-01T12:00:00Z");
        assert_eq!(read(&[until]).0, None);
        assert_eq!(read(&[("heddle.dev/paused", "false"), until]).0, None);
        let (pause, faults) = read(&[
            ("heddle.dev/paused", "true"),
            until,
            ("heddle.dev/paused-by", "ada"),
            ("heddle.dev/paused-reason", " the pool is being mended "),
        ]);
        let pause = pause.unwrap();
        assert_eq!(
            pause.in_words(),
            "it is paused by ada until 2026-03-01T12:00:00Z: the pool is being mended"
        );
        assert_eq!(faults, Vec::<String>::new());
        let at = |text: &str| pause.holds_at(text.parse().unwrap());
        assert!(at("2026-03-01T11:59:59.999Z") && !at("2026-03-01T12:00:00Z"));
        let (pause, _) = read(&[("heddle.dev/paused", "true")]);
        assert_eq!(pause.unwrap().in_words(), "it is paused");
    }

    #[test]
    fn a_time_that_cannot_be_read_ends_no_pause() {
        let (pause, faults) = read(&[
            ("heddle.dev/paused", "true"),
            ("heddle.dev/paused-until", "tomorrow"),
        ]);
        assert!(pause.unwrap().holds_at(Timestamp::MAX));
        assert_eq!(faults.len(), 1, "{faults:?}");
        let (pause, faults) = read(&[("heddle.dev/paused", "yes")]);
        assert!(
            pause.is_none() && faults[0].contains("true or false"),
            "{faults:?}"
        );
    }

    #[test]
    fn what_is_patched_is_read_and_its_end_leaves_nothing() {
        let pause = DeliveryPause {
            until: Some("2026-03-01T12:00:00Z".parse().unwrap()),
            by: Some("ada".to_owned()),
            reason: Some("because".to_owned()),
        };
        let patch = pause.patch();
        let annotations = patch["metadata"]["annotations"].as_object().unwrap();
        let annotations: BTreeMap<String, String> = annotations
            .iter()
            .map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()))
            .collect();
        assert_eq!(DeliveryPause::read(Some(&annotations), |_| ()), Some(pause));
        let end = DeliveryPause::end_patch();
        let end = end["metadata"]["annotations"].as_object().unwrap();
        assert!(annotations.keys().all(|name| end[name].is_null()));
    }
}
