//! One file for each page: what it asks, and what it makes of the answers.

pub(crate) mod alerts;
pub(crate) mod application;
pub(crate) mod audit;
pub(crate) mod catalog;
pub(crate) mod checks;
pub(crate) mod dead_letters;
pub(crate) mod delays;
pub(crate) mod event;
pub(crate) mod events;
pub(crate) mod find;
#[cfg(test)]
pub(crate) mod fixture;
pub(crate) mod help;
pub(crate) mod instances;
pub(crate) mod login;
pub(crate) mod mesh;
pub(crate) mod missing;
pub(crate) mod object;
pub(crate) mod offering;
pub(crate) mod publish;
pub(crate) mod refused;
pub(crate) mod registries;
pub(crate) mod subscribe;
pub(crate) mod trigger;
pub(crate) mod types;
pub(crate) mod what_if;

use std::collections::BTreeSet;

use heddle_api::access::{Right, Scope};
use jiff::Timestamp;
use serde_json::Value;

use crate::ask::{AnswerFault, Inquirer};
use crate::frame::RenderedPage;
use crate::links::PageLinks;
use crate::objects::KindPath;
use crate::visit::Visit;

/// What a page is made with.
#[derive(Clone, Debug)]
pub(crate) struct PageLook {
    pub(crate) ask: Inquirer,
    pub(crate) links: PageLinks,
    pub(crate) now: Timestamp,
    pub(crate) visit: Visit,
}

/// Objects of one answer.
pub(crate) const ROWS_MAX: usize = 500;

impl PageLook {
    /// Whether whoever looks may do something in a namespace, or where there is none.
    pub(crate) fn may(&self, right: Right, namespace: Option<&str>) -> bool {
        let access = self.visit.access();
        access.is_some_and(|access| access.may(right, namespace))
    }

    /// The namespaces of whoever looks in some of them only.
    pub(crate) fn own_namespaces(&self) -> Option<&BTreeSet<String>> {
        match &self.visit.access()?.scope {
            Scope::All => None,
            Scope::Namespaces(names) => Some(names),
        }
    }

    /// Objects of a kind, where whoever looks may see them: in all namespaces, or in each of theirs.
    pub(crate) async fn objects(&self, kind: &KindPath) -> Result<Vec<Value>, AnswerFault> {
        let Some(names) = self.own_namespaces() else {
            return self.list(&kind.all()).await;
        };
        let mut found = Vec::new();
        for namespace in names {
            found.extend(self.list(&kind.within(namespace)).await?);
            if found.len() >= ROWS_MAX {
                break;
            }
        }
        Ok(found)
    }

    /// The first objects of a list.
    pub(crate) async fn list(&self, path: &str) -> Result<Vec<Value>, AnswerFault> {
        let mut list: Value = self.ask.get(&format!("{path}?limit={ROWS_MAX}")).await?;
        let items = list["items"].as_array_mut().map(std::mem::take);
        Ok(items.unwrap_or_default())
    }
}

/// A page, or the refusal of a question that it cannot do without.
pub(crate) type PageResult = Result<RenderedPage, AnswerFault>;
