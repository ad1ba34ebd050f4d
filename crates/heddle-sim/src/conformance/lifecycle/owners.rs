//! Owners and namespaces: what goes when they go, and in which order.

use anyhow::{Context as _, Result, ensure};
use heddle_api::Trigger;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, PostParams, PropagationPolicy};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use serde_json::json;

use super::{held, release};
use crate::conformance::subject::{config_map, config_maps, trigger, triggers};
use crate::conformance::wire::{MERGE, patch, refused};
use crate::conformance::{PATIENCE, Scope, ensure_eq, group};

group!("lifecycle":
    a_namespace_being_deleted_takes_nothing_new;
with_controller_manager:
    dependents_go_after_their_owner,
    dependents_go_before_a_patient_owner,
    orphans_stay,
    a_dependent_stays_while_one_owner_does,
    a_dependent_of_nobody_goes,
    a_deleted_namespace_goes_with_everything_in_it,
);

async fn a_namespace_being_deleted_takes_nothing_new(client: Client, scope: Scope) -> Result<()> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let created = namespaces.get(&scope.namespace).await?;
    ensure_eq!(
        created.status.and_then(|status| status.phase).as_deref(),
        Some("Active"),
    );
    ensure_eq!(
        created
            .metadata
            .labels
            .unwrap_or_default()
            .get("kubernetes.io/metadata.name"),
        Some(&scope.namespace),
    );
    ensure_eq!(
        created.spec.and_then(|spec| spec.finalizers),
        Some(vec!["kubernetes".to_owned()]),
    );
    // A held object keeps the namespace from going before the check is through, where something would end it.
    held(&client, &scope, "held").await?;
    namespaces
        .delete(&scope.namespace, &DeleteParams::default())
        .await?;
    let ending = namespaces.get(&scope.namespace).await?;
    ensure!(ending.metadata.deletion_timestamp.is_some());
    ensure_eq!(
        ending.status.and_then(|status| status.phase).as_deref(),
        Some("Terminating"),
    );
    let late = scope
        .objects::<ConfigMap>(&client)
        .create(&PostParams::default(), &config_map("late", "key", "value"))
        .await;
    let fragment = format!(
        "configmaps \"late\" is forbidden: unable to create new content in namespace {} because it is being terminated",
        scope.namespace
    );
    let status = refused(late, 403, "Forbidden", &fragment)?;
    ensure_eq!(
        status.details.context("no details")?.causes[0].reason,
        "NamespaceTerminating",
    );
    release(&client, &format!("{}/held", triggers(&scope))).await
}

async fn dependents_go_after_their_owner(client: Client, scope: Scope) -> Result<()> {
    let family = Family::create(&client, &scope).await?;
    family.delete_owner(PropagationPolicy::Background).await?;
    ensure!(family.owners.get_opt("owner").await?.is_none());
    family.gone("child").await
}

async fn dependents_go_before_a_patient_owner(client: Client, scope: Scope) -> Result<()> {
    let family = Family::create(&client, &scope).await?;
    // The child is held, so the owner has to wait for it.
    let child = format!("{}/child", config_maps(&scope));
    let hold = json!({"metadata": {"finalizers": ["heddle.dev/test"]}});
    patch(&client, &child, MERGE, &hold).await?.accepted(200)?;
    family.delete_owner(PropagationPolicy::Foreground).await?;
    let waiting = family.owners.get("owner").await?;
    ensure!(waiting.metadata.deletion_timestamp.is_some());
    ensure_eq!(waiting.finalizers(), ["foregroundDeletion"]);
    let deleting =
        |map: Option<&ConfigMap>| map.is_none_or(|map| map.metadata.deletion_timestamp.is_some());
    tokio::time::timeout(
        PATIENCE,
        await_condition(family.children.clone(), "child", deleting),
    )
    .await
    .context("the child is not deleted")??;
    ensure!(
        family.owners.get_opt("owner").await?.is_some(),
        "the owner did not wait"
    );
    release(&client, &child).await?;
    family.owner_gone().await
}

async fn orphans_stay(client: Client, scope: Scope) -> Result<()> {
    let family = Family::create(&client, &scope).await?;
    family.delete_owner(PropagationPolicy::Orphan).await?;
    family.owner_gone().await?;
    let child = family.children.get("child").await?;
    ensure_eq!(child.owner_references(), []);
    ensure!(child.metadata.deletion_timestamp.is_none());
    Ok(())
}

async fn a_dependent_stays_while_one_owner_does(client: Client, scope: Scope) -> Result<()> {
    let family = Family::create(&client, &scope).await?;
    let second = family
        .owners
        .create(&PostParams::default(), &trigger("second"))
        .await?;
    let first = family.owners.get("owner").await?;
    let mut shared = config_map("shared", "key", "value");
    shared.metadata.owner_references =
        Some(vec![owner_reference(&first)?, owner_reference(&second)?]);
    family
        .children
        .create(&PostParams::default(), &shared)
        .await?;
    family.delete_owner(PropagationPolicy::Background).await?;
    // Once the other child is gone, the collector has been at work.
    family.gone("child").await?;
    let lost_one =
        |map: Option<&ConfigMap>| map.is_none_or(|map| map.owner_references().len() == 1);
    let left = tokio::time::timeout(
        PATIENCE,
        await_condition(family.children.clone(), "shared", lost_one),
    )
    .await
    .context("the absent owner is still named")??
    .context("the shared child is gone")?;
    ensure_eq!(left.owner_references()[0].name, "second");
    Ok(())
}

async fn a_dependent_of_nobody_goes(client: Client, scope: Scope) -> Result<()> {
    let family = Family::create(&client, &scope).await?;
    let mut stray = config_map("stray", "key", "value");
    let mut owner = owner_reference(&family.owners.get("owner").await?)?;
    owner.uid = "11111111-1111-1111-1111-111111111111".to_owned();
    stray.metadata.owner_references = Some(vec![owner]);
    family
        .children
        .create(&PostParams::default(), &stray)
        .await?;
    family.gone("stray").await?;
    ensure!(family.children.get_opt("child").await?.is_some());
    Ok(())
}

async fn a_deleted_namespace_goes_with_everything_in_it(
    client: Client,
    scope: Scope,
) -> Result<()> {
    let family = Family::create(&client, &scope).await?;
    held(&client, &scope, "held").await?;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let uid = namespaces
        .get(&scope.namespace)
        .await?
        .uid()
        .context("no uid")?;
    namespaces
        .delete(&scope.namespace, &DeleteParams::default())
        .await?;
    family.gone("child").await?;
    // What is held is deleted, but waits; so does the namespace.
    let deleting = |object: Option<&Trigger>| {
        object.is_none_or(|object| object.metadata.deletion_timestamp.is_some())
    };
    tokio::time::timeout(
        PATIENCE,
        await_condition(family.owners.clone(), "held", deleting),
    )
    .await
    .context("the held object is not deleted")??;
    ensure!(namespaces.get_opt(&scope.namespace).await?.is_some());
    release(&client, &format!("{}/held", triggers(&scope))).await?;
    let gone = await_condition(namespaces, &scope.namespace, conditions::is_deleted(&uid));
    tokio::time::timeout(PATIENCE, gone)
        .await
        .context("the namespace does not go")??;
    Ok(())
}

/// A Trigger and the ConfigMap it owns.
struct Family {
    owners: Api<Trigger>,
    children: Api<ConfigMap>,
}

impl Family {
    async fn create(client: &Client, scope: &Scope) -> Result<Self> {
        let owners = scope.objects::<Trigger>(client);
        let children = scope.objects::<ConfigMap>(client);
        let owner = owners
            .create(&PostParams::default(), &trigger("owner"))
            .await?;
        let mut child = config_map("child", "key", "value");
        child.metadata.owner_references = Some(vec![owner_reference(&owner)?]);
        children.create(&PostParams::default(), &child).await?;
        Ok(Self { owners, children })
    }

    async fn delete_owner(&self, propagation_policy: PropagationPolicy) -> Result<()> {
        let params = DeleteParams {
            propagation_policy: Some(propagation_policy),
            ..DeleteParams::default()
        };
        self.owners.delete("owner", &params).await?;
        Ok(())
    }

    async fn owner_gone(&self) -> Result<()> {
        let gone = await_condition(self.owners.clone(), "owner", |owner: Option<&Trigger>| {
            owner.is_none()
        });
        tokio::time::timeout(PATIENCE, gone)
            .await
            .context("the owner does not go")??;
        Ok(())
    }

    async fn gone(&self, child: &str) -> Result<()> {
        let gone = await_condition(self.children.clone(), child, |map: Option<&ConfigMap>| {
            map.is_none()
        });
        tokio::time::timeout(PATIENCE, gone)
            .await
            .with_context(|| format!("{child} does not go"))??;
        Ok(())
    }
}

fn owner_reference(owner: &Trigger) -> Result<OwnerReference> {
    owner
        .controller_owner_ref(&())
        .map(|reference| OwnerReference {
            controller: None,
            block_owner_deletion: Some(true),
            ..reference
        })
        .context("the owner has no identity")
}
