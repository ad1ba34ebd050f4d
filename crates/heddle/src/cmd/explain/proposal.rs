//! Which filter is tried on which broker's events. Pure: objects and arguments in, a proposal out.

use std::collections::BTreeMap;

use anyhow::Context as _;
use heddle_api::Condition;
use heddle_api::broker;
use heddle_api::conditions::READY;
use heddle_api::filter::{Filter, FilterSource};
use heddle_api::trigger::TriggerFilter;
use serde::Deserialize as _;
use serde_json::Value;

use crate::client::target::Qualified;
use crate::cmd::publish::pair;
use crate::failure::Failure;

/// Filters on the command line, in the dialects of a trigger.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct FilterArgs {
    /// An attribute that has exactly this value; may be repeated
    #[arg(long = "filter", value_name = "NAME=VALUE", value_parser = pair)]
    exact: Vec<(String, String)>,

    /// An attribute that starts so; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    prefix: Vec<(String, String)>,

    /// An attribute that ends so; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    suffix: Vec<(String, String)>,

    /// An expression in CloudEvents SQL; may be repeated
    #[arg(long, value_name = "EXPRESSION", allow_hyphen_values = true)]
    cesql: Vec<String>,

    /// Any filters as text, one on a line, such as `exact type = order.created`; nothing is every event
    #[arg(long, value_name = "TEXT", value_parser = filters_text)]
    filters: Option<FilterList>,
}

impl FilterArgs {
    pub(super) fn is_empty(&self) -> bool {
        self.exact.is_empty()
            && self.prefix.is_empty()
            && self.suffix.is_empty()
            && self.cesql.is_empty()
            && self.filters.is_none()
    }

    /// One filter per argument: an attribute may be asked for twice, and then both must hold.
    pub(super) fn filters(&self) -> Vec<Filter> {
        let one =
            |(name, value): &(String, String)| BTreeMap::from([(name.clone(), value.clone())]);
        let exact = self.exact.iter().map(|pair| Filter {
            exact: one(pair),
            ..Filter::default()
        });
        let prefix = self.prefix.iter().map(|pair| Filter {
            prefix: one(pair),
            ..Filter::default()
        });
        let suffix = self.suffix.iter().map(|pair| Filter {
            suffix: one(pair),
            ..Filter::default()
        });
        let cesql = self.cesql.iter().map(|text| cesql(text.clone()));
        let texts = self.filters.iter().flat_map(|list| list.0.clone());
        let typed = exact.chain(prefix).chain(suffix).chain(cesql);
        typed.chain(texts).collect()
    }
}

/// Filters that were written as text.
#[derive(Clone, Debug)]
struct FilterList(Vec<Filter>);

fn filters_text(text: &str) -> Result<FilterList, String> {
    let read = heddle_api::filter::text::parse(text);
    read.map(FilterList)
        .map_err(|fault| format!("at character {}: {}", fault.position + 1, fault.message))
}

fn cesql(expression: String) -> Filter {
    Filter {
        cesql: Some(expression),
        ..Filter::default()
    }
}

/// What is tried.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Proposal {
    /// The trigger, when there is one.
    pub(super) existing: Option<Qualified>,
    pub(super) broker: Qualified,
    pub(super) filters: Vec<Filter>,
    pub(super) ready: Option<Condition>,
}

impl Proposal {
    /// As the server has it.
    pub(super) fn existing(name: Qualified, object: &Value) -> anyhow::Result<Self> {
        let conditions = object["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten();
        let ready = conditions.filter_map(|condition| Condition::deserialize(condition).ok());
        Ok(Self {
            ready: ready.into_iter().find(|condition| condition.type_ == READY),
            existing: Some(name.clone()),
            ..Self::declared(object, &name.namespace)?
        })
    }

    /// As somebody wrote it. Only filters and broker count; the rest may be missing.
    pub(super) fn declared(object: &Value, namespace: &str) -> anyhow::Result<Self> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let namespace = object["metadata"]["namespace"]
            .as_str()
            .unwrap_or(namespace);
        let broker = object["spec"]["broker"]
            .as_str()
            .unwrap_or(broker::DEFAULT_NAME);
        let filters = filters_of(&object["spec"])
            .map_err(|error| Failure::Usage(error.to_string()))
            .with_context(|| format!("the filters of trigger {name} cannot be read"))?;
        Ok(Self {
            existing: None,
            broker: format!("{namespace}/{broker}").parse()?,
            filters,
            ready: None,
        })
    }

    /// Nothing but a namespace: its usual broker.
    pub(super) fn on_default_broker(namespace: &str) -> Self {
        Self {
            existing: None,
            broker: Qualified {
                namespace: namespace.to_owned(),
                name: broker::DEFAULT_NAME.to_owned(),
            },
            filters: Vec::new(),
            ready: None,
        }
    }

    pub(super) fn entry(&self) -> String {
        format!("broker/{}", self.broker)
    }
}

/// `filters`, or else the older `filter`, where an empty value asks only that the attribute is there.
fn filters_of(spec: &Value) -> Result<Vec<Filter>, serde_json::Error> {
    let filters = Option::<Vec<Filter>>::deserialize(&spec["filters"])?.unwrap_or_default();
    if !filters.is_empty() {
        return Ok(filters);
    }
    let older = Option::<TriggerFilter>::deserialize(&spec["filter"])?.unwrap_or_default();
    Ok(FilterSource::Attributes(older.attributes).filters())
}
