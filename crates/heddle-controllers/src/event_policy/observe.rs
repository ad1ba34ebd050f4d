//! Observe: the policy, and whether those it names exist.

use heddle_api::event_policy::{EventPolicy, Publisher, application_subject};
use heddle_api::well_known::INTEGRATION_NAMESPACE;
use heddle_api::{Application, Broker, Channel, HTTPSource, Subscription, Trigger};
use kube::ResourceExt as _;

use super::named_application;
use crate::reconcile::{Ctx, Error};

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub policy: EventPolicy,
    /// Of each publisher in `spec.from`, in that order: who it stands for, or why for nobody.
    pub subjects: Vec<Result<Subject, String>>,
    /// Whether publishers are asked who they are; `None` where no mesh runs.
    pub asks_who: Option<bool>,
}

/// Somebody whom a policy is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Who proves it with credentials.
    Publisher(String),
    /// A place of the mesh, from which events are led on.
    Place(String),
}

pub(super) async fn observe(ctx: &Ctx, policy: EventPolicy) -> Result<World, Error> {
    let namespace = policy.namespace().unwrap_or_default();
    let mut subjects = Vec::with_capacity(policy.spec.from.len());
    for publisher in &policy.spec.from {
        subjects.push(subject(ctx, publisher, &namespace).await?);
    }
    Ok(World {
        asks_who: ctx.plane().map(|plane| plane.asks_who()),
        subjects,
        policy,
    })
}

async fn subject(
    ctx: &Ctx,
    publisher: &Publisher,
    namespace: &str,
) -> Result<Result<Subject, String>, Error> {
    let Some(reference) = &publisher.reference else {
        let sub = publisher.sub.clone().unwrap_or_default();
        if let Some(name) = named_application(&sub)
            && !is_application(ctx, name).await?
        {
            return Ok(Err(format!("there is no Application {name:?} for {sub:?}")));
        }
        return Ok(Ok(Subject::Publisher(sub)));
    };
    let name = &*reference.name;
    let namespace = reference.namespace.as_deref().unwrap_or(namespace);
    let (word, exists) = match reference.kind.as_str() {
        "Channel" => (
            "channel",
            ctx.cached::<Channel>(namespace, name).await?.is_some(),
        ),
        "Broker" => (
            "broker",
            ctx.cached::<Broker>(namespace, name).await?.is_some(),
        ),
        "Subscription" => (
            "subscription",
            ctx.cached::<Subscription>(namespace, name).await?.is_some(),
        ),
        "Trigger" => (
            "trigger",
            ctx.cached::<Trigger>(namespace, name).await?.is_some(),
        ),
        "Application" => {
            let found = is_application(ctx, name).await?;
            return Ok(found
                .then(|| Subject::Publisher(application_subject(name)))
                .ok_or_else(|| format!("there is no Application {name:?}")));
        }
        "HTTPSource" if namespace == INTEGRATION_NAMESPACE => {
            let found = ctx.cached::<HTTPSource>(namespace, name).await?.is_some();
            return Ok(found
                .then(|| Subject::Publisher(application_subject(name)))
                .ok_or_else(|| format!("there is no HTTPSource {namespace}/{name}")));
        }
        kind => {
            return Ok(Err(format!(
                "{kind} {namespace}/{name} has no identity; name a Channel, Broker, Subscription, Trigger or Application"
            )));
        }
    };
    let place = format!("{word}/{namespace}/{name}");
    if exists {
        return Ok(Ok(Subject::Place(place)));
    }
    Ok(Err(format!("there is no {place}")))
}

async fn is_application(ctx: &Ctx, name: &str) -> Result<bool, Error> {
    let known: Option<Application> = ctx.cached_global(name).await?;
    Ok(known.is_some())
}
