//! Who changed what: `/heddle/v1/audit`.

use heddle_api::audit::AuditPage;

use super::{Ledger, query};

/// Which lines, and how many.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct AuditLinesAsked {
    /// As the parameters spell it: key and value.
    pub(crate) wanted: Vec<(&'static str, String)>,
    pub(crate) limit: u64,
    /// The `next` of the page before.
    pub(crate) after: Option<u64>,
    /// The `newest` of an earlier answer.
    pub(crate) newer: Option<u64>,
}

impl AuditLinesAsked {
    fn path(&self) -> String {
        let number = |number: Option<u64>| number.map(|number| number.to_string());
        let (limit, after, newer) = (
            self.limit.to_string(),
            number(self.after),
            number(self.newer),
        );
        let mut pairs: Vec<(&str, Option<&str>)> = (self.wanted.iter())
            .map(|(key, value)| (*key, Some(value.as_str())))
            .collect();
        pairs.push(("after", after.as_deref()));
        pairs.push(("newer", newer.as_deref()));
        pairs.push(("limit", Some(&limit)));
        format!("/heddle/v1/audit{}", query(&pairs))
    }
}

impl Ledger<'_> {
    pub(crate) async fn audit(&self, asked: &AuditLinesAsked) -> anyhow::Result<AuditPage> {
        self.get(&asked.path(), "the audit log").await
    }
}
