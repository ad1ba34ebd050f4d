//! Links under other names than those heddle gives: where to look for one that was there before.
//!
//! Only a hint, from the watch: whoever uses a name reads the object before believing anything of it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use heddle_api::well_known::{APPLICATION_LABEL, BROKER_NAMESPACE_LABEL, INTEGRATION_NAMESPACE};
use heddle_api::{EventFlow, Subscription, names};
use kube::ResourceExt as _;
use parking_lot::Mutex;

use crate::watch::{Change, SharedWatch};

/// Names by Application and namespace.
type LinkNames = HashMap<(String, String), BTreeSet<String>>;

#[derive(Debug, Clone, Default)]
pub(crate) struct Links(Arc<Mutex<LinkNames>>);

impl Links {
    pub(super) fn new(shared_watch: &mut SharedWatch<Subscription>) -> Self {
        let links = Self::default();
        let known = links.clone();
        shared_watch.on_change(move |change| known.update(change));
        links
    }

    fn update(&self, change: &Change<'_, Subscription>) {
        let mut names = self.0.lock();
        let old = match change {
            Change::Applied { old: Some(old), .. } | Change::Deleted(old) => Some(*old),
            _ => None,
        };
        if let Some((key, name)) = old.and_then(|link| entry(link))
            && let Some(known) = names.get_mut(&key)
        {
            known.remove(&name);
            if known.is_empty() {
                names.remove(&key);
            }
        }
        if !matches!(change, Change::Deleted(_))
            && let Some((key, name)) = entry(change.object())
        {
            names.entry(key).or_default().insert(name);
        }
    }

    /// Names under which a flow's link may be found besides its own.
    pub(super) fn of(&self, flow: &EventFlow) -> Vec<String> {
        let namespace = flow.namespace().unwrap_or_default();
        let key = (flow.spec.application.clone(), namespace);
        let names = self.0.lock();
        names.get(&key).into_iter().flatten().cloned().collect()
    }
}

/// The Application and the namespace that a link says it connects.
pub(super) fn pair(link: &Subscription) -> Option<(&str, &str)> {
    let labels = link.metadata.labels.as_ref()?;
    let (application, namespace) = (
        labels.get(APPLICATION_LABEL)?,
        labels.get(BROKER_NAMESPACE_LABEL)?,
    );
    let is_link = link.metadata.namespace.as_deref() == Some(INTEGRATION_NAMESPACE);
    is_link.then_some((application, namespace))
}

fn entry(link: &Subscription) -> Option<((String, String), String)> {
    let (application, namespace) = pair(link)?;
    let name = link.name_any();
    if name == names::link(application, namespace) {
        return None;
    }
    Some(((application.to_owned(), namespace.to_owned()), name))
}
