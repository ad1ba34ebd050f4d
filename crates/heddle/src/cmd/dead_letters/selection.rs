//! Which dead letters a command line means.

use heddle_api::ledger::DeadLetterSelection;

use crate::client::ledger::{DeadLetterQuery, PAGE_MAX};
use crate::client::target::{self, Qualified};
use crate::failure::Failure;

/// What the dead letters have in common; all that is given must hold.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Filters {
    /// Of this trigger
    #[arg(long, value_name = "NAMESPACE/NAME", conflicts_with = "subscription")]
    pub(super) trigger: Option<Qualified>,

    /// Of this subscription
    #[arg(long, value_name = "NAMESPACE/NAME")]
    pub(super) subscription: Option<Qualified>,

    /// Of triggers and subscriptions in this namespace
    #[arg(short, long, value_name = "NAME", value_parser = name)]
    pub(super) namespace: Option<String>,

    /// Events of this type
    #[arg(long = "type", value_name = "TYPE")]
    pub(super) type_: Option<String>,

    /// Events of this source
    #[arg(long, value_name = "URI")]
    pub(super) source: Option<String>,

    /// Events with this id
    #[arg(long, value_name = "ID")]
    pub(super) id: Option<String>,

    /// Of this group, by the key that `list --by cause -o json` shows
    #[arg(long, value_name = "KEY")]
    pub(super) group: Option<String>,
}

fn name(text: &str) -> Result<String, Failure> {
    target::check_name(text)?;
    Ok(text.to_owned())
}

impl Filters {
    fn consumer(&self) -> Option<String> {
        let trigger = self.trigger.as_ref().map(|name| format!("trigger/{name}"));
        let subscription =
            || (self.subscription.as_ref()).map(|name| format!("subscription/{name}"));
        trigger.or_else(subscription)
    }

    pub(super) fn query(&self) -> DeadLetterQuery {
        DeadLetterQuery {
            consumer: self.consumer(),
            namespace: self.namespace.clone(),
            type_: self.type_.clone(),
            source: self.source.clone(),
            id: self.id.clone(),
            group: self.group.clone(),
            limit: PAGE_MAX,
            after: None,
        }
    }

    /// What was given, in words that follow `3 dead letters`.
    pub(super) fn words(&self) -> String {
        let given = [
            (" of ", self.consumer()),
            (" in namespace ", self.namespace.clone()),
            (" with type ", self.type_.clone()),
            (" with source ", self.source.clone()),
            (" with id ", self.id.clone()),
            (" of group ", self.group.clone()),
        ];
        let words = given
            .into_iter()
            .filter_map(|(words, value)| Some(format!("{words}{}", value?)));
        words.collect()
    }
}

/// Names, or filters, or everything.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct Selection {
    /// Names, as `list` shows them
    #[arg(value_name = "NAME", conflicts_with_all = ["trigger", "subscription", "namespace", "type_", "source", "id", "group", "all"])]
    pub(super) names: Vec<String>,

    #[command(flatten)]
    pub(super) filters: Filters,

    /// Every dead letter there is
    #[arg(long, conflicts_with_all = ["trigger", "subscription", "namespace", "type_", "source", "id", "group"])]
    pub(super) all: bool,
}

impl Selection {
    /// What the server is asked. Nothing chosen is a mistake, never everything.
    pub(super) fn request(&self) -> Result<DeadLetterSelection, Failure> {
        let mut names = self.names.clone();
        names.sort();
        names.dedup();
        let request = DeadLetterSelection {
            names,
            consumer: self.filters.consumer(),
            namespace: self.filters.namespace.clone(),
            type_: self.filters.type_.clone(),
            source: self.filters.source.clone(),
            id: self.filters.id.clone(),
            all: self.all,
            group: self.filters.group.clone(),
            ..DeadLetterSelection::default()
        };
        if request == DeadLetterSelection::default() {
            return Err(Failure::Usage(
                "which dead letters? name them, or choose with --trigger, --subscription, -n, --type, --source, --id or --group, or pass --all"
                    .to_owned(),
            ));
        }
        Ok(request)
    }
}
