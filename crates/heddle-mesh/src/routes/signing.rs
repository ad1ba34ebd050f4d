//! From the Secrets to what signs a Trigger's events. Keys are prepared once, and again only when they changed.
//!
//! What is to be signed and cannot be is not sent: whoever asked for signatures has a subscriber that refuses what has none, or
//! believes it.

use std::collections::HashMap;
use std::sync::Arc;

use heddle_api::dataplane::Resources;
use heddle_api::names::signing_secret;
use heddle_api::signing::secret::{MISSING, in_the_way};
use heddle_api::signing::{SigningSecret, is_wanted};
use heddle_api::well_known::annotation;
use heddle_api::{Subscription, Trigger};
use kube::ResourceExt as _;

use crate::path::delivery::signing::Signer;

/// Whether, and with what, events are signed.
#[derive(Clone, Debug, Default)]
pub enum Signing {
    /// Nobody asked for it.
    #[default]
    Unwanted,
    With(Arc<Signer>),
    /// Somebody did, and it cannot be done: why, and what to do.
    Impossible(String),
}

/// The Secrets there are, by namespace and name.
pub(super) struct SigningSecrets<'a>(HashMap<(&'a str, &'a str), &'a SigningSecret>);

impl<'a> SigningSecrets<'a> {
    pub(super) fn of(resources: &'a Resources) -> Self {
        let secrets = resources.signing_secrets.iter();
        Self(secrets.map(|secret| (secret.place(), secret)).collect())
    }

    /// What a trigger asks for. What the table before has ready is taken from there.
    pub(super) fn signing(&self, trigger: &Trigger, before: Option<&Signing>) -> Signing {
        match is_wanted(trigger.metadata.annotations.as_ref()) {
            Ok(false) => return Signing::Unwanted,
            Ok(true) => {}
            Err(why) => return Signing::Impossible(why),
        }
        let (namespace, name) = (trigger.namespace().unwrap_or_default(), trigger.name_any());
        let impossible = |why: &str| Signing::Impossible(in_the_way(&namespace, &name, why));
        let wanted = signing_secret(&name);
        let Some(secret) = self.0.get(&(&*namespace, &*wanted)) else {
            return impossible(MISSING);
        };
        if let Some(Signing::With(known)) = before
            && known.is_of(secret, trigger)
        {
            return Signing::With(Arc::clone(known));
        }
        match Signer::new(secret, trigger) {
            Ok(signer) => Signing::With(Arc::new(signer)),
            Err(why) => impossible(&why),
        }
    }
}

/// A Subscription that asks for what only Triggers have is not sent to as if it had not.
pub(super) fn of_subscription(subscription: &Subscription) -> Signing {
    match is_wanted(subscription.metadata.annotations.as_ref()) {
        Ok(false) => Signing::Unwanted,
        Ok(true) | Err(_) => Signing::Impossible(format!(
            "annotation {} is for Triggers only; nothing is sent until it is taken away",
            annotation::SIGNING
        )),
    }
}
