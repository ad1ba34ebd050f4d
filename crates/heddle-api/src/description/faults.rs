//! Everything that is wrong with a description, for its author, who does not want to hear of one thing at a time.
//!
//! A description is refused for its first fault. So each plan and each parameter is judged alone as well: what is wrong in one of
//! them hides nothing in the others.

use serde_json::{Map, Value};

use super::{Description, members};

type Members = Map<String, Value>;

/// What only makes sense beside the other plans, or the other parameters.
const BESIDE_OTHERS: [&str; 2] = ["updates_to", "dependencies"];

/// All faults of a text, in the order they are met. None when it can be offered.
#[must_use]
pub fn faults(text: &str) -> Vec<String> {
    let members = match members(text) {
        Ok(members) => members,
        Err(why) => return vec![why],
    };
    let mut faults = Vec::new();
    for alone in std::iter::once(members.clone()).chain(parts(&members)) {
        if let Err(why) = Description::of(&alone)
            && !faults.contains(&why)
        {
            faults.push(why);
        }
    }
    faults
}

/// The head without its plans, and a description of each plan with no parameters, and with each one of them.
fn parts(members: &Members) -> Vec<Members> {
    let mut head = members.clone();
    head.insert("plans".to_owned(), serde_json::json!([{"name": "x"}]));
    let mut parts = vec![head];
    for plan in list(members, "plans") {
        let mut bare = plan.clone();
        bare.remove("parameters");
        bare.remove("bind_parameters");
        let with = |name: &str, item: &Members| {
            let mut plan = bare.clone();
            plan.insert(
                name.to_owned(),
                Value::Array(vec![Value::Object(item.clone())]),
            );
            plan
        };
        for name in ["parameters", "bind_parameters"] {
            let parameters = list(&plan, name);
            let plans = parameters.iter().map(|parameter| with(name, parameter));
            parts.extend(plans.map(only));
        }
        parts.push(only(bare));
    }
    parts
}

/// A sound description of this plan alone: what is wrong with the rest is found with the rest.
fn only(plan: Members) -> Members {
    let plans = Value::Array(vec![Value::Object(plan)]);
    let head = [
        ("version", Value::from("1.0")),
        ("name", Value::from("x")),
        ("plans", plans),
    ];
    head.map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect()
}

/// The items that have a name: without one, only its place says which is meant, and that would be another.
fn list(members: &Members, name: &str) -> Vec<Members> {
    let items = members.get(name).and_then(Value::as_array);
    let items = items.into_iter().flatten().filter_map(Value::as_object);
    let named = items.filter(|item| item.get("name").is_some_and(Value::is_string));
    let mut named: Vec<Members> = named.cloned().collect();
    for item in &mut named {
        BESIDE_OTHERS.iter().for_each(|key| drop(item.remove(*key)));
    }
    named
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
    fn what_can_be_offered_has_none() {
        let text =
            "{version: 1.0, name: x, plans: [{name: small, updates_to: [large]}, {name: large}]}";
        assert_eq!(faults(text), [""; 0]);
    }
}
