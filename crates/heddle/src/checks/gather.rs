//! Everything a check needs to know, asked of this process with the rights of whoever wants to know.

use heddle_api::access::Scope;
use heddle_api::conditions::READY;
use heddle_api::ledger::Accounts;
use heddle_api::{
    Application, Broker, Channel, Condition, EventFlow, EventPolicy, Registry, ServiceBinding,
    ServiceInstance, Subscription, Trigger,
};
use heddle_rt::net::percent_encoded;
use heddle_ui::{AnswerFault, Inquirer};
use http::StatusCode;
use jiff::Timestamp;
use kube::Resource;
use kube::core::{ClusterResourceScope, NamespaceResourceScope};
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::findings::{Facts, Unready};
use super::flows::{Flows, MOMENT};
use crate::output::age;

/// Objects of one answer.
const PAGE_OBJECTS_MAX: usize = 500;

/// Whoever asks, and where they may look.
#[derive(Clone, Debug)]
pub(super) struct CheckReader {
    pub(super) ask: Inquirer,
    pub(super) scope: Scope,
}

/// Where objects of a kind are listed.
struct KindLists {
    name: &'static str,
    paths: Vec<String>,
}

impl CheckReader {
    /// Whatever cannot be read of the mesh is a finding; what cannot be read of objects is a refusal.
    pub(super) async fn gather(
        &self,
        unready_because: Vec<String>,
        now: Timestamp,
    ) -> Result<Facts, AnswerFault> {
        let accounts = self.ask.get::<Accounts>("/heddle/v1/accounts").await;
        let (objects, unready) = self.unready(now).await?;
        Ok(Facts {
            unready_because,
            accounts: accounts.map_err(|fault| fault.message),
            objects,
            unready,
            flows: self.flows().await?,
        })
    }

    /// How many objects there are, and those of them that are not ready.
    async fn unready(&self, now: Timestamp) -> Result<(u64, Vec<Unready>), AnswerFault> {
        let kinds = [
            self.global::<Application>("application"),
            self.local::<Channel>("channel"),
            self.local::<Subscription>("subscription"),
            self.local::<Broker>("broker"),
            self.local::<Trigger>("trigger"),
            self.local::<EventFlow>("eventflow"),
            self.local::<EventPolicy>("eventpolicy"),
            self.local::<ServiceInstance>("serviceinstance"),
            self.local::<ServiceBinding>("servicebinding"),
            self.global::<Registry>("registry"),
        ];
        let (mut looked_at, mut unready) = (0, Vec::new());
        for kind in kinds {
            for path in &kind.paths {
                let list = self.list(path).await?;
                looked_at += list.len() as u64;
                let found = list
                    .iter()
                    .filter_map(|object| unready_of(kind.name, object, now));
                unready.extend(found);
            }
        }
        Ok((looked_at, unready))
    }

    /// What flows share lies in several namespaces: who does not see all of them cannot tell what is missing.
    async fn flows(&self) -> Result<Flows, AnswerFault> {
        if self.scope != Scope::All {
            return Ok(Flows::default());
        }
        Ok(Flows {
            flows: self.all().await?,
            brokers: self.all().await?,
            subscriptions: self.all().await?,
            activations: self.all().await?,
            policies: self.all().await?,
            instances: self.all().await?,
        })
    }

    async fn all<K>(&self) -> Result<Vec<K>, AnswerFault>
    where
        K: Resource<DynamicType = ()> + DeserializeOwned,
    {
        let path = K::url_path(&(), None);
        let read = |object| {
            serde_json::from_value(object).map_err(|error| AnswerFault {
                status: StatusCode::INTERNAL_SERVER_ERROR,
                message: format!("cannot read one of {}: {error}", K::plural(&())),
                path: path.clone(),
                position: None,
            })
        };
        self.list(&path).await?.into_iter().map(read).collect()
    }

    /// All objects of a list, page by page.
    async fn list(&self, path: &str) -> Result<Vec<Value>, AnswerFault> {
        let mut found = Vec::new();
        let mut next = String::new();
        loop {
            let page = format!("{path}?limit={PAGE_OBJECTS_MAX}{next}");
            let mut page: Value = self.ask.get(&page).await?;
            if let Some(items) = page["items"].as_array_mut() {
                found.append(items);
            }
            match page["metadata"]["continue"].as_str() {
                Some(more) if !more.is_empty() => {
                    next = format!("&continue={}", percent_encoded(more));
                }
                _ => return Ok(found),
            }
        }
    }

    fn local<K>(&self, name: &'static str) -> KindLists
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let within = |namespace: &String| K::url_path(&(), Some(namespace));
        let paths = match &self.scope {
            Scope::All => vec![K::url_path(&(), None)],
            Scope::Namespaces(names) => names.iter().map(within).collect(),
        };
        KindLists { name, paths }
    }

    /// What is in no namespace is for those who look everywhere.
    fn global<K>(&self, name: &'static str) -> KindLists
    where
        K: Resource<DynamicType = (), Scope = ClusterResourceScope>,
    {
        let paths = match self.scope {
            Scope::All => vec![K::url_path(&(), None)],
            Scope::Namespaces(_) => Vec::new(),
        };
        KindLists { name, paths }
    }
}

/// Why an object is not ready, unless it is.
pub(super) fn unready_of(kind: &str, object: &Value, now: Timestamp) -> Option<Unready> {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let object_name = match metadata["namespace"].as_str() {
        Some(namespace) => format!("{kind}/{namespace}/{name}"),
        None => format!("{kind}/{name}"),
    };
    let conditions = object["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    let mut conditions = conditions.filter_map(|condition| Condition::deserialize(condition).ok());
    let ready = conditions.find(|condition| condition.type_ == READY);
    let unready = Unready::unless_true(object_name, ready)?;
    Some(Unready {
        settling: is_settling(object, unready.certain, now),
        explained_by: explained_by(kind, object),
        ..unready
    })
}

/// Whether controllers have not had their moment yet: it was just made and nothing is certain, or something was just asked
/// of it.
fn is_settling(object: &Value, is_certain: bool, now: Timestamp) -> bool {
    let operation = &object["spec"]["operation"];
    let progress = &object["status"]["operation"];
    let has_failed = progress["id"] == operation["id"] && progress["state"] == "failed";
    let accepted = Some(&operation["acceptedAt"]).filter(|_| !has_failed);
    let created = Some(&object["metadata"]["creationTimestamp"]).filter(|_| !is_certain);
    let times = [created, accepted];
    let times = times.into_iter().flatten().filter_map(Value::as_str);
    let mut times = times.filter_map(|time| time.parse::<Timestamp>().ok());
    times.any(|time| age(time, now) <= MOMENT)
}

/// The command that says more than the object does, where there is one.
fn explained_by(kind: &str, object: &Value) -> Option<String> {
    let namespace = object["metadata"]["namespace"].as_str()?;
    let name = object["metadata"]["name"].as_str()?;
    match kind {
        "serviceinstance" => {
            let id = object["spec"]["instanceID"].as_str().unwrap_or(name);
            Some(format!("heddle explain instance {id} -n {namespace}"))
        }
        "trigger" => Some(format!("heddle explain trigger {namespace}/{name}")),
        _ => None,
    }
}
