//! Which dead letters a page speaks of: in its address, in the question behind it, and on a command line.

use heddle_api::ledger::DeadLetterSelection;

use super::command::quoted;
use crate::links::part;
use crate::visit::Visit;

/// Names in one address; a page has no more rows.
const NAMES_MAX: usize = 500;

/// A choice that can be written down in all three ways.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LetterChoice(pub(crate) DeadLetterSelection);

impl LetterChoice {
    /// As the address of a page has it.
    pub(crate) fn of(visit: &Visit) -> Self {
        let mut names = visit.texts("name");
        names.truncate(NAMES_MAX);
        Self(DeadLetterSelection {
            names,
            consumer: visit.text("consumer"),
            namespace: visit.text("namespace"),
            type_: visit.text("type"),
            source: visit.text("source"),
            id: visit.text("id"),
            group: visit.text("group"),
            all: visit.text("all").is_some(),
            ..DeadLetterSelection::default()
        })
    }

    /// One of them.
    pub(crate) fn named(name: &str) -> Self {
        Self(DeadLetterSelection {
            names: vec![name.to_owned()],
            ..DeadLetterSelection::default()
        })
    }

    /// The same, and of this group only.
    pub(crate) fn of_group(&self, key: &str) -> Self {
        let mut selection = self.0.clone();
        selection.group = Some(key.to_owned());
        Self(selection)
    }

    /// What the list shows, as something that can be acted on: where nothing is chosen, everything is meant.
    pub(crate) fn all_shown(&self) -> Self {
        let mut selection = self.0.clone();
        selection.all = self.fields().is_empty();
        Self(selection)
    }

    /// Whether nothing is meant at all.
    pub(crate) fn is_nothing(&self) -> bool {
        self.0.names.is_empty() && self.fields().is_empty() && !self.0.all
    }

    /// What must hold, besides the names.
    pub(crate) fn fields(&self) -> Vec<(&'static str, &str)> {
        let chosen = &self.0;
        let fields = [
            ("namespace", &chosen.namespace),
            ("consumer", &chosen.consumer),
            ("type", &chosen.type_),
            ("source", &chosen.source),
            ("id", &chosen.id),
            ("group", &chosen.group),
        ];
        let fields = fields.into_iter();
        fields
            .filter_map(|(key, value)| Some((key, value.as_deref()?)))
            .collect()
    }

    /// For an address: `type=order.created&name=17`, or nothing.
    pub(crate) fn query(&self) -> String {
        let fields = self.fields().into_iter();
        let names = self.0.names.iter().map(|name| ("name", name.as_str()));
        let all = self.0.all.then_some(("all", "1"));
        let pairs = fields.chain(names).chain(all);
        let pairs: Vec<String> = pairs
            .map(|(key, value)| format!("{key}={}", part(value)))
            .collect();
        pairs.join("&")
    }

    /// As `heddle dead-letters` takes it, with a space before each argument.
    pub(crate) fn arguments(&self) -> String {
        let flags = self.fields().into_iter().filter_map(|(key, value)| {
            let (flag, value) = match (key, value.split_once('/')) {
                ("consumer", Some(("trigger", name))) => ("--trigger", name),
                ("consumer", Some(("subscription", name))) => ("--subscription", name),
                // There is none, and the command says so.
                ("consumer", _) => ("--trigger", value),
                ("namespace", _) => ("-n", value),
                ("type", _) => ("--type", value),
                ("source", _) => ("--source", value),
                ("id", _) => ("--id", value),
                ("group", _) => ("--group", value),
                _ => return None,
            };
            Some(format!(" {flag} {}", quoted(value)))
        });
        let names = self.0.names.iter().map(|name| format!(" {}", quoted(name)));
        let all = self.0.all.then(|| " --all".to_owned());
        flags.chain(names).chain(all).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(of: impl FnOnce(&mut DeadLetterSelection)) -> LetterChoice {
        let mut selection = DeadLetterSelection::default();
        of(&mut selection);
        LetterChoice(selection)
    }

    #[test]
    fn a_choice_is_the_same_in_an_address_and_on_a_command_line() {
        let cases = [
            (choice(|_| {}), "", ""),
            (choice(|one| one.all = true), "all=1", " --all"),
            (LetterChoice::named("17"), "name=17", " 17"),
            (
                choice(|one| one.names = vec!["1".to_owned(), "--all".to_owned()]),
                "name=1&name=--all",
                " 1 '--all'",
            ),
            (
                choice(|one| one.consumer = Some("trigger/team-a/orders".to_owned())),
                "consumer=trigger%2Fteam-a%2Forders",
                " --trigger team-a/orders",
            ),
            (
                choice(|one| one.consumer = Some("subscription/a/b".to_owned())),
                "consumer=subscription%2Fa%2Fb",
                " --subscription a/b",
            ),
            (
                choice(|one| one.type_ = Some("a b&all=1".to_owned())),
                "type=a%20b%26all%3D1",
                " --type 'a b&all=1'",
            ),
            (
                choice(|one| one.namespace = Some("team-a".to_owned()))
                    .of_group("cause:trigger/team-a/x:00"),
                "namespace=team-a&group=cause%3Atrigger%2Fteam-a%2Fx%3A00",
                " -n team-a --group cause:trigger/team-a/x:00",
            ),
        ];
        for (choice, query, arguments) in cases {
            assert_eq!(choice.query(), query);
            assert_eq!(choice.arguments(), arguments);
        }
    }

    #[test]
    fn everything_is_meant_only_where_the_list_is_of_everything() {
        assert!(choice(|_| {}).is_nothing() && choice(|_| {}).all_shown().0.all);
        let narrowed = choice(|one| one.type_ = Some("x".to_owned()));
        assert!(!narrowed.is_nothing() && !narrowed.all_shown().0.all);
    }
}
