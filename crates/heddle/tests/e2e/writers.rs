//! Writers of resources that do not stop until they are told to, and remember what they wrote.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ListParams, PostParams};

use crate::harness::{Acknowledgements, Server};

/// What a run of writers did.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Whether or not there was an answer.
    pub(crate) tried: BTreeSet<String>,
    /// Every name that the server promised to keep, with its version.
    pub(crate) acknowledged: BTreeMap<String, u64>,
}

impl Written {
    pub(crate) fn add(&mut self, other: Self) {
        self.tried.extend(other.tried);
        self.acknowledged.extend(other.acknowledged);
    }
}

/// Writers of one ConfigMap after the other in the default namespace.
#[derive(Debug)]
pub(crate) struct Writers {
    api: Api<ConfigMap>,
    /// The start of every name.
    prefix: String,
    acknowledged: Acknowledgements,
}

impl Writers {
    pub(crate) async fn on(server: &Server, prefix: &str) -> Self {
        Self {
            api: config_maps(server).await,
            prefix: prefix.to_owned(),
            acknowledged: Acknowledgements::default(),
        }
    }

    /// Creates with so many writers until the server goes away, which it may only do once it is allowed to.
    pub(crate) async fn run(&self, writers: usize) -> Written {
        let runs = join_all((0..writers).map(|writer| self.writer(writer))).await;
        let mut written = Written::default();
        for run in runs {
            written.add(run);
        }
        written
    }

    async fn writer(&self, writer: usize) -> Written {
        let mut written = Written::default();
        for number in 0.. {
            let name = format!("{}-w{writer}-n{number}", self.prefix);
            written.tried.insert(name.clone());
            let mut object = ConfigMap::default();
            object.metadata.name = Some(name.clone());
            match self.api.create(&PostParams::default(), &object).await {
                Ok(made) => {
                    let version = version(made.metadata.resource_version.as_deref());
                    written.acknowledged.insert(name, version);
                    self.acknowledged.add();
                }
                Err(error) => {
                    let failure = format!("{name} was not written: {error}");
                    self.acknowledged.missing(&failure);
                    break;
                }
            }
        }
        written
    }

    /// Waits for so many acknowledgements; from then on the server may go away.
    pub(crate) async fn until_acknowledged(&self, count: usize) {
        self.acknowledged
            .until(count, "objects to be written")
            .await;
    }
}

/// What a server has.
#[derive(Debug)]
pub(crate) struct Stored {
    /// Every ConfigMap of the default namespace, with its version.
    pub(crate) versions: BTreeMap<String, u64>,
    /// The version of the whole.
    pub(crate) newest: u64,
}

impl Stored {
    pub(crate) async fn on(server: &Server) -> Self {
        let list = config_maps(server).await.list(&ListParams::default()).await;
        let list = list.unwrap();
        let named = list.items.into_iter().map(|object| {
            let version = version(object.metadata.resource_version.as_deref());
            (object.metadata.name.unwrap(), version)
        });
        Self {
            versions: named.collect(),
            newest: version(list.metadata.resource_version.as_deref()),
        }
    }
}

async fn config_maps(server: &Server) -> Api<ConfigMap> {
    Api::namespaced(server.client().await, "default")
}

pub(crate) fn version(text: Option<&str>) -> u64 {
    text.unwrap().parse().unwrap()
}
