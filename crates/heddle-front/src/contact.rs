//! When a platform last asked about something.
//!
//! It is noted on the object, so that an operator can tell orphans from what is in use. Coarse and best effort: at most once
//! in ten minutes for an object, behind the answer's back, and not at all when there is too much else to do.

use std::collections::HashSet;
use std::sync::Arc;

use heddle_api::service_binding::ServiceBinding;
use heddle_api::service_instance::ServiceInstance;
use heddle_api::well_known::{LAST_CONTACT_ANNOTATION, field_manager};
use heddle_rt::{Clock, OnError, Tasks};
use jiff::{SignedDuration, Timestamp};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::mpsc;

use crate::lifecycle::Provisioned;

/// How fresh a note has to be.
const FRESH: SignedDuration = SignedDuration::from_mins(10);
/// Notes that wait to be written; more than these are dropped, and taken at the next contact.
const WAITING_MAX: usize = 256;

/// Takes notes.
#[derive(Debug, Clone)]
pub(crate) struct Contacts {
    clock: Clock,
    notes: mpsc::Sender<Note>,
    waiting: Arc<Mutex<HashSet<Note>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Note {
    noun: &'static str,
    namespace: String,
    name: String,
}

impl Contacts {
    pub(crate) fn start(client: Client, clock: Clock, tasks: &Tasks) -> Self {
        let (notes, mut taken) = mpsc::channel::<Note>(WAITING_MAX);
        let contacts = Self {
            clock: clock.clone(),
            notes,
            waiting: Arc::default(),
        };
        let waiting = contacts.waiting.clone();
        tasks.spawn("contacts", OnError::Report, async move {
            while let Some(note) = taken.recv().await {
                write(&client, &note, clock.now()).await;
                waiting.lock().remove(&note);
            }
        });
        contacts
    }

    /// The platform asked about `object` and was answered.
    pub(crate) fn note<K: Provisioned>(&self, object: &K) {
        if !is_due(object, self.clock.now()) {
            return;
        }
        let note = Note {
            noun: K::NOUN,
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
        };
        if self.waiting.lock().insert(note.clone()) && self.notes.try_send(note.clone()).is_err() {
            self.waiting.lock().remove(&note);
        }
    }
}

/// Puts the time of contact on an object that is written anyway.
pub(crate) fn stamp<K: Provisioned>(object: &mut K, now: Timestamp) {
    let annotations = object.annotations_mut();
    annotations.insert(LAST_CONTACT_ANNOTATION.to_owned(), text(now));
}

fn is_due<K: Resource>(object: &K, now: Timestamp) -> bool {
    let noted = object.annotations().get(LAST_CONTACT_ANNOTATION);
    let noted: Option<Timestamp> = noted.and_then(|text| text.parse().ok());
    noted.is_none_or(|noted| now.duration_since(noted) >= FRESH)
}

fn text(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

async fn write(client: &Client, note: &Note, now: Timestamp) {
    let patch = json!({"metadata": {"annotations": {LAST_CONTACT_ANNOTATION: text(now)}}});
    let params = PatchParams {
        field_manager: Some(field_manager::OSB.to_owned()),
        ..PatchParams::default()
    };
    let patch = Patch::Merge(patch);
    let done = if note.noun == ServiceInstance::NOUN {
        let api: Api<ServiceInstance> = Api::namespaced(client.clone(), &note.namespace);
        api.patch_metadata(&note.name, &params, &patch)
            .await
            .map(drop)
    } else {
        let api: Api<ServiceBinding> = Api::namespaced(client.clone(), &note.namespace);
        api.patch_metadata(&note.name, &params, &patch)
            .await
            .map(drop)
    };
    if let Err(error) = done {
        tracing::debug!(namespace = %note.namespace, name = %note.name, %error, "a contact was not noted");
    }
}
