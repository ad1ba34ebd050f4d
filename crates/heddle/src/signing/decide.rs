//! What becomes of the keys of a Trigger: pure, from what was looked at.

use std::time::Duration;

use heddle_api::Trigger;
use heddle_api::names::signing_secret;
use heddle_api::signing::secret::{MISSING, belongs_to_another};
use heddle_api::signing::{SigningKey, SigningKeys, SigningSecret, is_wanted};
use heddle_api::well_known::{MANAGED_BY, MANAGED_BY_LABEL, SIGNING_SECRET_TYPE};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource as _, ResourceExt as _};

use super::SigningRefusal;

/// A Trigger and the Secret with its keys, as they were looked at.
#[derive(Clone)]
pub(super) struct SigningState {
    pub(super) trigger: Trigger,
    pub(super) secret: Option<Secret>,
}

impl SigningState {
    pub(super) fn namespace(&self) -> String {
        self.trigger.namespace().unwrap_or_default()
    }

    /// The Secret, in words.
    fn place(&self) -> String {
        let secret = signing_secret(&self.trigger.name_any());
        format!("Secret {}/{secret}", self.namespace())
    }

    /// What its events are signed with, or would be; or why with nothing.
    fn keys(&self) -> Result<SigningKeys, String> {
        let Some(secret) = &self.secret else {
            return Err(MISSING.to_owned());
        };
        if secret.type_.as_deref() != Some(SIGNING_SECRET_TYPE) {
            return Err(format!("is not of type {SIGNING_SECRET_TYPE}"));
        }
        SigningSecret::from(std::sync::Arc::new(secret.clone())).keys_for(&self.trigger)
    }

    /// Whether somebody asked for signatures, as far as that can be understood.
    fn is_wanted(&self) -> bool {
        is_wanted(self.trigger.metadata.annotations.as_ref()).unwrap_or(true)
    }

    /// The Secret, if heddle made it for this Trigger.
    pub(super) fn own_secret(&self) -> Option<&Secret> {
        let secret = self.secret.as_ref()?;
        let is_own = is_made_here(secret) && !belongs_to_another(secret, &self.trigger);
        is_own.then_some(secret)
    }

    /// Whoever brings their own key changes it themselves; what stands under the name for another reason is not overwritten.
    fn check_writable(&self) -> Result<(), SigningRefusal> {
        match &self.secret {
            Some(secret) if !is_made_here(secret) => Err(SigningRefusal::conflict(format!(
                "{} was not made by heddle and is left as it is: change the key in it, or remove it and try again",
                self.place()
            ))),
            _ => Ok(()),
        }
    }

    /// The first key. One that works is not replaced: its subscriber would be left with the old one.
    pub(super) fn begin(&self, key: SigningKey) -> Result<SigningKeys, SigningRefusal> {
        self.check_writable()?;
        if self.is_wanted() && self.keys().is_ok() {
            return Err(SigningRefusal::conflict(format!(
                "its events are signed already, with the key in {}; `--rotate` makes another, and leaves the subscriber time to change over",
                self.place()
            )));
        }
        Ok(SigningKeys {
            current: key,
            previous: None,
        })
    }

    /// The keys that sign now, to be changed.
    pub(super) fn signing_keys(&self) -> Result<SigningKeys, SigningRefusal> {
        self.check_writable()?;
        if !self.is_wanted() {
            let message = "its events are not signed: begin with `heddle trigger sign`";
            return Err(SigningRefusal::conflict(message));
        }
        self.keys().map_err(|why| {
            SigningRefusal::conflict(format!(
                "there is no key to change: {} {why}; `heddle trigger sign` makes one",
                self.place()
            ))
        })
    }

    /// The Secret as it is to be.
    pub(super) fn secret_with(&self, keys: &SigningKeys) -> Secret {
        let live = self.secret.as_ref().map(|secret| &secret.metadata);
        Secret {
            metadata: ObjectMeta {
                name: Some(signing_secret(&self.trigger.name_any())),
                namespace: Some(self.namespace()),
                labels: Some([(MANAGED_BY_LABEL.to_owned(), MANAGED_BY.to_owned())].into()),
                owner_references: self
                    .trigger
                    .controller_owner_ref(&())
                    .map(|owner| vec![owner]),
                uid: live.and_then(|live| live.uid.clone()),
                resource_version: live.and_then(|live| live.resource_version.clone()),
                ..ObjectMeta::default()
            },
            type_: Some(SIGNING_SECRET_TYPE.to_owned()),
            data: Some(keys.data()),
            ..Secret::default()
        }
    }
}

/// Whether heddle made it, for whichever Trigger.
fn is_made_here(secret: &Secret) -> bool {
    let mut owners = secret.owner_references().iter();
    secret.type_.as_deref() == Some(SIGNING_SECRET_TYPE)
        && owners.any(|owner| owner.kind == Trigger::kind(&()) && owner.controller == Some(true))
}

/// Another key. With time to change over, the one before signs for so long; there is room for two.
pub(super) fn rotate(
    before: SigningKeys,
    key: SigningKey,
    overlap: Duration,
    now: Timestamp,
) -> Result<SigningKeys, SigningRefusal> {
    let still = before.previous.filter(|(_, until)| now < *until);
    if let Some((_, until)) = still.filter(|_| !overlap.is_zero()) {
        return Err(SigningRefusal::conflict(format!(
            "the key before the last signs until {until}, and there is room for two: wait, or end both at once with `--overlap none`"
        )));
    }
    let until = now.saturating_add(overlap);
    let until = until.map_err(|error| SigningRefusal::invalid(error.to_string()))?;
    Ok(SigningKeys {
        current: key,
        previous: (!overlap.is_zero()).then_some((before.current, until)),
    })
}

#[cfg(test)]
mod tests;
