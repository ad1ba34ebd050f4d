//! How long events took: `/heddle/v1/delays`.

use heddle_api::delays::{DelayMap, DelayRows};

use super::{Ledger, query};

/// Of which events, and how it is put together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DelaysAsked {
    pub(crate) by: DelayRows,
    /// As for events.
    pub(crate) query: String,
    pub(crate) since: String,
    pub(crate) until: Option<String>,
    pub(crate) columns: u32,
    pub(crate) events: u64,
}

impl Ledger<'_> {
    pub(crate) async fn delays(&self, asked: &DelaysAsked) -> anyhow::Result<DelayMap> {
        let (columns, events) = (asked.columns.to_string(), asked.events.to_string());
        let query = query(&[
            ("by", Some(asked.by.name())),
            ("q", (!asked.query.is_empty()).then_some(&*asked.query)),
            ("since", Some(&asked.since)),
            ("until", asked.until.as_deref()),
            ("columns", Some(&columns)),
            ("events", Some(&events)),
        ]);
        self.get(&format!("/heddle/v1/delays{query}"), "delays")
            .await
    }
}
