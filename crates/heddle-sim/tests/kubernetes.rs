//! The conformance suite against a real Kubernetes API server: it proves the checks right.
//!
//! `HEDDLE_CONFORMANCE_KUBECONFIG` names the kubeconfig of a cluster administrator; without it every test fails. heddle's
//! kinds are installed first. Checks that need a controller manager apply where `HEDDLE_CONFORMANCE_CONTROLLER_MANAGER` says
//! that there is one (any value): an API server alone would let them wait in vain.

use anyhow::{Context as _, Result};
use heddle_sim::conformance::{self, Janitor, PATIENCE};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Patch, PatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, Config, ResourceExt as _};

const KUBECONFIG: &str = "HEDDLE_CONFORMANCE_KUBECONFIG";
const CONTROLLER_MANAGER: &str = "HEDDLE_CONFORMANCE_CONTROLLER_MANAGER";

fn janitor() -> Janitor {
    match std::env::var_os(CONTROLLER_MANAGER) {
        Some(_) => Janitor::Present,
        None => Janitor::Absent,
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test binary has no configuration but its environment"
)]
async fn client() -> Result<Client> {
    let path = std::env::var(KUBECONFIG)
        .with_context(|| format!("{KUBECONFIG} does not name a kubeconfig"))?;
    let kubeconfig = Kubeconfig::read_from(path)?;
    let mut config =
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    // A refusal is an answer here; the client must not hide it behind attempts of its own.
    config.default_retry = false;
    let client = Client::try_from(config)?;
    install_kinds(&client).await?;
    Ok(client)
}

/// Applies heddle's kinds and waits until the server serves them. Applying twice, also at the same time, changes nothing.
async fn install_kinds(client: &Client) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let apply = PatchParams::apply("heddle-conformance").force();
    for crd in heddle_api::crds() {
        let name = crd.name_any();
        definitions
            .patch(&name, &apply, &Patch::Apply(&crd))
            .await?;
        let established = conditions::is_crd_established();
        tokio::time::timeout(
            PATIENCE,
            await_condition(definitions.clone(), &name, established),
        )
        .await
        .with_context(|| format!("{name} is not established"))??;
    }
    Ok(())
}

async fn run(group: &str) -> Result<()> {
    conformance::run(&client().await?, group, janitor()).await
}

heddle_sim::conformance_tests!(run);
