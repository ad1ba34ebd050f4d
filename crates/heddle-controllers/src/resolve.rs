//! From a destination to the address that events are sent to.
//!
//! A `uri` alone is the address. A `ref` is the address of the object it names, and a relative `uri` beside it is resolved
//! against that. What does not resolve says why in words that name the object.

mod uri;

#[cfg(test)]
mod tests;

use heddle_api::conditions::Condition;
use heddle_api::delivery::{condition, reason};
use heddle_api::duck::{Addressable, DeliverySpec, Destination, KReference};
use heddle_api::{Application, Broker, Channel};
use kube::Resource;
use kube::core::NamespaceResourceScope;

use crate::reconcile::{Ctx, Error};
use crate::referenced::{Referenced, ReferencedState};
use crate::references::Target;
use crate::watch::Watched;

/// An address, or why there is none.
pub(crate) type Resolution = Result<Resolved, String>;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub uri: String,
    pub ca_certs: Option<String>,
    pub audience: Option<String>,
}

/// What there is to say about a dead-letter sink, for every kind that may have one.
pub(crate) fn sink_resolved(sink: Option<&Resolution>) -> Condition {
    let type_ = condition::DEAD_LETTER_SINK_RESOLVED;
    match sink {
        None => Condition::met_because(
            type_,
            reason::DEAD_LETTER_SINK_NOT_CONFIGURED,
            "undeliverable events rest in the internal dead-letter store",
        ),
        Some(Ok(_)) => Condition::met(type_),
        Some(Err(why)) => Condition::unmet(
            type_,
            reason::DEAD_LETTER_SINK_NOT_FOUND,
            format!("the dead-letter sink does not resolve: {why}"),
        ),
    }
}

/// What a reference was found to mean.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Referent {
    /// Nothing of that kind has an address here.
    NoSuchKind,
    Absent,
    Leaving,
    WithoutAddress,
    At(Addressable),
}

/// Looks the destination up, by what is known of what it refers to. References without a namespace mean `namespace`.
pub(crate) async fn destination(
    ctx: &Ctx,
    destination: &Destination,
    namespace: &str,
) -> Result<Resolution, Error> {
    let referent = match &destination.reference {
        Some(reference) => Some(look_up(ctx, reference, namespace).await?),
        None => None,
    };
    Ok(resolve(destination, namespace, referent.as_ref()))
}

/// Looks the dead-letter sink up, where one is asked for.
pub(crate) async fn sink(
    ctx: &Ctx,
    delivery: Option<&DeliverySpec>,
    namespace: &str,
) -> Result<Option<Resolution>, Error> {
    let sink = delivery.and_then(|delivery| delivery.dead_letter_sink.as_ref());
    optional(ctx, sink, namespace).await
}

/// Looks a destination up that need not be given.
pub(crate) async fn optional(
    ctx: &Ctx,
    given: Option<&Destination>,
    namespace: &str,
) -> Result<Option<Resolution>, Error> {
    match given {
        Some(given) => destination(ctx, given, namespace).await.map(Some),
        None => Ok(None),
    }
}

/// What the dead-letter sink refers to.
pub(crate) fn sink_target(delivery: Option<&DeliverySpec>, namespace: &str) -> Option<Target> {
    target(delivery?.dead_letter_sink.as_ref()?, namespace)
}

/// What the destination refers to, so that its changes wake whoever wrote it.
pub(crate) fn target(destination: &Destination, namespace: &str) -> Option<Target> {
    let reference = destination.reference.as_ref()?;
    let namespace = match kind_of(reference)? {
        Kind::Application => "",
        Kind::Broker | Kind::Channel => reference.namespace.as_deref().unwrap_or(namespace),
    };
    Some(Target::new(&reference.kind, namespace, &reference.name))
}

/// The kinds that can be sent to.
#[derive(Clone, Copy)]
enum Kind {
    Broker,
    Channel,
    Application,
}

/// The version of a reference is not looked at: there is one of each kind. A wrong group is another kind.
fn kind_of(reference: &KReference) -> Option<Kind> {
    let is = |kind: &str, group: &str| {
        let given = reference.api_version.as_deref();
        let given = given.map(|version| version.split_once('/').map_or("", |(group, _)| group));
        reference.kind == kind && given.is_none_or(|given| given == group)
    };
    if is(&Broker::kind(&()), &Broker::group(&())) {
        Some(Kind::Broker)
    } else if is(&Channel::kind(&()), &Channel::group(&())) {
        Some(Kind::Channel)
    } else if is(&Application::kind(&()), &Application::group(&())) {
        Some(Kind::Application)
    } else {
        None
    }
}

async fn look_up(ctx: &Ctx, reference: &KReference, namespace: &str) -> Result<Referent, Error> {
    let namespace = reference.namespace.as_deref().unwrap_or(namespace);
    let name = &reference.name;
    Ok(match kind_of(reference) {
        None => Referent::NoSuchKind,
        Some(Kind::Broker) => addressed::<Broker>(ctx, namespace, name).await?,
        Some(Kind::Channel) => addressed::<Channel>(ctx, namespace, name).await?,
        Some(Kind::Application) => {
            let base_url = ctx.plane().and_then(|plane| plane.base_url());
            match ctx.cached_global::<Application>(name).await? {
                None => Referent::Absent,
                Some(application) => referent(ReferencedState {
                    address: base_url.map(|base| Addressable {
                        url: Some(events_url(&base, name)),
                        ..Addressable::default()
                    }),
                    ..application.referenced_state()
                }),
            }
        }
    })
}

/// Where the events of an Application are published.
pub(crate) fn events_url(base_url: &str, application: &str) -> String {
    format!("{}/{application}/events", base_url.trim_end_matches('/'))
}

async fn addressed<K>(ctx: &Ctx, namespace: &str, name: &str) -> Result<Referent, Error>
where
    K: Referenced + Watched + Resource<Scope = NamespaceResourceScope>,
{
    let found = ctx.cached::<K>(namespace, name).await?;
    Ok(found.map_or(Referent::Absent, |found| referent(found.referenced_state())))
}

fn referent(referenced: ReferencedState) -> Referent {
    match referenced.address {
        _ if referenced.leaving => Referent::Leaving,
        Some(address) => Referent::At(address),
        None => Referent::WithoutAddress,
    }
}

/// The address of a destination, given what its reference was found to mean.
fn resolve(destination: &Destination, namespace: &str, referent: Option<&Referent>) -> Resolution {
    let given = |uri: String, address: Option<&Addressable>| Resolved {
        uri,
        ca_certs: (destination.ca_certs.clone())
            .or_else(|| address.and_then(|address| address.ca_certs.clone())),
        audience: (destination.audience.clone())
            .or_else(|| address.and_then(|address| address.audience.clone())),
    };
    let (Some(reference), Some(referent)) = (&destination.reference, referent) else {
        let Some(uri) = &destination.uri else {
            return Err("it has neither a ref nor a uri".to_owned());
        };
        uri::check_absolute(uri)?;
        return Ok(given(uri.clone(), None));
    };
    let object = describe(reference, namespace);
    let address = match referent {
        Referent::NoSuchKind => {
            return Err(format!(
                "{object} has no address here: only Brokers, Channels and Applications do; use a uri"
            ));
        }
        Referent::Absent => return Err(format!("{object} does not exist")),
        Referent::Leaving => return Err(format!("{object} is being deleted")),
        Referent::WithoutAddress => {
            return Err(format!(
                "{object} has no address yet; its conditions say why"
            ));
        }
        Referent::At(address) => address,
    };
    let Some(base) = &address.url else {
        return Err(format!(
            "{object} has no address yet; its conditions say why"
        ));
    };
    let uri = match &destination.uri {
        None => base.clone(),
        Some(relative) => uri::join(base, relative).ok_or_else(|| {
            format!("the uri {relative:?} stands beside a ref and must be relative to it")
        })?,
    };
    Ok(given(uri, Some(address)))
}

/// `Broker team-a/default`, as messages name an object.
fn describe(reference: &KReference, namespace: &str) -> String {
    let (kind, name) = (&reference.kind, &reference.name);
    match kind_of(reference) {
        Some(Kind::Application) => format!("{kind} {name}"),
        _ => {
            let namespace = reference.namespace.as_deref().unwrap_or(namespace);
            format!("{kind} {namespace}/{name}")
        }
    }
}
