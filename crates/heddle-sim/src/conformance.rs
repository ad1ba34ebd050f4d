//! What a client may rely on, asked of an API server it cannot see into.
//!
//! Every check knows nothing but a [`kube::Client`] and a namespace of its own. The same checks run against the API server
//! inside heddle and against a real kube-apiserver that holds heddle's kinds; where the two are meant to differ is written in
//! `conformance/differences.md`, with the reason. A check that fails on the real server is a wrong check.
//!
//! Checks are independent of each other and of whatever else the server holds: they can run concurrently, and repeatedly
//! against one server. They wait for conditions; [`PATIENCE`] only bounds how long a missing answer is waited for.

mod apply;
mod bad_input;
mod discovery;
mod lifecycle;
mod reads;
mod runtime;
mod subject;
mod watch;
mod wire;
mod writes;

use std::fmt;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures::StreamExt as _;
use futures::future::BoxFuture;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::{Api, Client, Resource};

/// How long a check waits for something that never comes before it fails. Nothing succeeds by waiting this long.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Checks that run at the same time. A real server on a small machine answers slowly when asked much more.
const CONCURRENCY: usize = 4;

/// One promise of the API server.
#[derive(Clone, Copy)]
pub struct Check {
    /// The group and the promise, as in `writes/a_stale_replace_is_refused`.
    pub name: &'static str,
    /// Whether the promise is kept by Kubernetes' controller manager, so that an API server alone cannot be asked.
    pub needs_controller_manager: bool,
    /// Asks. The namespace of the scope exists, is empty and belongs to this run of the check alone.
    pub run: fn(Client, Scope) -> BoxFuture<'static, Result<()>>,
}

impl fmt::Debug for Check {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// Where a check works.
#[derive(Clone, Debug)]
pub struct Scope {
    /// A fresh namespace.
    pub namespace: String,
}

impl Scope {
    /// Objects of a kind in this namespace.
    pub fn objects<K>(&self, client: &Client) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(client.clone(), &self.namespace)
    }

    /// A name that no other check uses, for objects outside of namespaces.
    pub fn unique(&self, name: &str) -> String {
        format!("{}-{name}", self.namespace)
    }
}

/// Whether the server under test comes with what a controller manager does: garbage collection, ending namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Janitor {
    /// It does; every check applies.
    Present,
    /// It is an API server alone; checks that need a controller manager do not apply.
    Absent,
}

/// A test for each group, which hands its name to `run`: against another server, the same suite.
#[macro_export]
macro_rules! conformance_tests {
    ($run:ident) => {
        $crate::conformance_tests!(
            $run: discovery, reads, watch, writes, apply, lifecycle, runtime, bad_input
        );
    };
    ($run:ident: $($group:ident),*) => {
        $(#[tokio::test(flavor = "multi_thread")]
        async fn $group() -> anyhow::Result<()> {
            $run(stringify!($group)).await
        })*

        #[test]
        fn every_group_is_run() {
            assert_eq!($crate::conformance::GROUPS, [$(stringify!($group)),*]);
        }
    };
}

/// The names of the groups, each a theme.
pub const GROUPS: [&str; 8] = [
    "discovery",
    "reads",
    "watch",
    "writes",
    "apply",
    "lifecycle",
    "runtime",
    "bad_input",
];

/// All checks.
pub fn checks() -> Vec<Check> {
    [
        discovery::checks(),
        reads::checks(),
        watch::checks(),
        writes::checks(),
        apply::checks(),
        lifecycle::checks(),
        runtime::checks(),
        bad_input::checks(),
    ]
    .concat()
}

/// Runs the checks of one group and reports every one that failed, with its reason.
///
/// Fails as well if the group has no check that applies: a misspelt group must not look like a passing one.
pub async fn run(client: &Client, group: &str, janitor: Janitor) -> Result<()> {
    let mut applicable: Vec<Check> = checks();
    applicable.retain(|check| {
        check
            .name
            .split_once('/')
            .is_some_and(|(of, _)| of == group)
            && (janitor == Janitor::Present || !check.needs_controller_manager)
    });
    if applicable.is_empty() {
        bail!("no check of the group {group:?} applies");
    }
    let count = applicable.len();
    let failures: Vec<String> = futures::stream::iter(applicable)
        .map(|check| async move {
            run_one(client, check)
                .await
                .err()
                .map(|error| format!("{}: {error:#}", check.name))
        })
        .buffer_unordered(CONCURRENCY)
        .filter_map(std::future::ready)
        .collect()
        .await;
    if !failures.is_empty() {
        bail!(
            "{} of {count} checks failed\n{}",
            failures.len(),
            failures.join("\n")
        );
    }
    Ok(())
}

/// Runs one check in a namespace of its own.
pub async fn run_one(client: &Client, check: Check) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = namespaces
        .create(
            &PostParams::default(),
            &Namespace {
                metadata: ObjectMeta {
                    generate_name: Some("conformance-".to_owned()),
                    ..ObjectMeta::default()
                },
                ..Namespace::default()
            },
        )
        .await
        .context("cannot create a namespace for the check")?;
    let scope = Scope {
        namespace: namespace
            .metadata
            .name
            .context("the server named no namespace")?,
    };
    let outcome = tokio::time::timeout(PATIENCE * 2, (check.run)(client.clone(), scope.clone()))
        .await
        .unwrap_or_else(|_| bail!("still not finished after {:?}", PATIENCE * 2));
    // Best effort: the namespace may already be gone, and on a server without controller manager it never goes.
    drop(
        namespaces
            .delete(&scope.namespace, &DeleteParams::default())
            .await,
    );
    outcome
}

/// Declares the checks of a group: the names of the functions are the promises.
macro_rules! group {
    ($group:literal: $($check:ident),* $(,)? $(; with_controller_manager: $($managed:ident),* $(,)?)?) => {
        /// The checks of this group.
        pub(in crate::conformance) fn checks() -> Vec<crate::conformance::Check> {
            vec![
                $(crate::conformance::Check {
                    name: concat!($group, "/", stringify!($check)),
                    needs_controller_manager: false,
                    run: |client, scope| Box::pin($check(client, scope)),
                },)*
                $($(crate::conformance::Check {
                    name: concat!($group, "/", stringify!($managed)),
                    needs_controller_manager: true,
                    run: |client, scope| Box::pin($managed(client, scope)),
                },)*)?
            ]
        }
    };
}
pub(crate) use group;

/// The labels of an object without the one that heddle gives every Trigger, as Knative's webhook does.
pub(crate) fn own_labels(object: &serde_json::Value) -> serde_json::Value {
    let mut labels = object["metadata"]["labels"].clone();
    if let Some(fields) = labels.as_object_mut() {
        fields.remove("eventing.knative.dev/broker");
        if fields.is_empty() {
            return serde_json::Value::Null;
        }
    }
    labels
}

/// Fails the check, with both values, unless they are equal.
macro_rules! ensure_eq {
    ($left:expr, $right:expr $(,)?) => {
        match (&$left, &$right) {
            (left, right) => anyhow::ensure!(
                *left == *right,
                "{} (line {}) is {left:?}, expected {right:?}",
                stringify!($left),
                line!(),
            ),
        }
    };
}
pub(crate) use ensure_eq;
