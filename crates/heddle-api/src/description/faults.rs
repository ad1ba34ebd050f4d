//! Everything that is wrong with a description, for its author, who does not want to hear of one thing at a time.

use super::{Description, members};

/// All faults of a text, in the order they are met. None when it can be offered.
#[must_use]
pub fn faults(text: &str) -> Vec<String> {
    match members(text) {
        Ok(members) => Description::judged(&members).1,
        Err(why) => vec![why],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plan_and_every_parameter_says_what_is_wrong_with_it() {
        let text = "
version: 1.0
name: x
async: sometimes
plans:
- name: small
  updates_to: [large]
  parameters:
  - {name: a, type: nonsense}
  - {name: b, type: string}
  - {name: c, type: rubbish}
- name: large
  bind_parameters:
  - {name: d, type: worse}
";
        let found = faults(text);
        for word in [
            "async",
            "parameter a of plan small",
            "parameter c of plan small",
            "bind parameter d of plan large",
        ] {
            assert!(
                found.iter().any(|fault| fault.contains(word)),
                "{word}: {found:#?}"
            );
        }
        assert!(
            !found.iter().any(|fault| fault.contains("parameter b")),
            "{found:#?}"
        );
        assert_eq!(
            faults("- a list"),
            ["the description is not a mapping of names to values"]
        );
    }

    #[test]
    fn what_lies_between_plans_and_between_parameters_is_told_all_at_once() {
        let text = "
version: 1.0
name: x
plans:
- name: small
  updates_to: [huge, large, tiny]
  parameters:
  - {name: a, type: string, dependencies: [{key: z}]}
  - {name: b, type: string, minimum: [], maximum: {}, dependencies: [{key: a}]}
  - {name: c, type: enum, pattern: '(', multiple_of: 0, dependencies: [{key: b}]}
  - {name: a, type: string}
- name: large
  updates_to: [small, gone]
  free: [perhaps]
- name: small
- just a text
- {description: without a name}
";
        let expected = [
            "minimum of parameter b of plan small",
            "maximum of parameter b of plan small",
            "free of plan large",
            "plan 4 is not a mapping",
            "plan 5: ",
            "parameter c of plan small is of type enum and has no enum",
            "parameter c of plan small has the pattern",
            "parameter c of plan small has a multiple_of",
            "parameter a of plan small is there twice",
            "parameter a of plan small depends on z",
            "two plans have the name small",
            "plan small updates to huge",
            "plan small updates to tiny",
            "plan large updates to gone",
        ];
        let found = faults(text);
        for word in expected {
            let with = found.iter().filter(|fault| fault.contains(word)).count();
            assert_eq!(with, 1, "{word}: {found:#?}");
        }
        assert_eq!(found.len(), expected.len(), "{found:#?}");
    }

    #[test]
    fn what_can_be_offered_has_none() {
        let text =
            "{version: 1.0, name: x, plans: [{name: small, updates_to: [large]}, {name: large}]}";
        assert_eq!(faults(text), [""; 0]);
    }
}
