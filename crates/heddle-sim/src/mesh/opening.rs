//! One life of the mesh: opened on a simulated disk, asked what it says about itself.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use heddle_api::ledger::{Account, DeadLetterSelection};
use heddle_mesh::log::embedded::{self, EmbeddedLog};
use heddle_mesh::log::{Log, Reserve};
use heddle_mesh::path::delivery::ConnectionLimits;
use heddle_mesh::path::delivery::courier::{Courier, CourierOptions};
use heddle_mesh::{Mesh, Options, Quota, Retention};
use heddle_rt::net::dial::Connect;
use heddle_rt::vfs::MemoryVfs;
use heddle_rt::{Chance, Clock, Tasks};
use heddle_store::Mode;
use http::Request;
use http_body_util::Full;
use serde_json::Value;

use super::book::{Book, Published};
use super::planted::Planted;

/// Small, so that segments are sealed, summed up and removed during a run.
const SEGMENT_BYTES: u64 = 8 << 10;

/// What a life of the mesh is given.
#[derive(Debug)]
pub(super) struct OpenDeps {
    pub(super) clock: Clock,
    pub(super) chance: Chance,
    pub(super) disk: MemoryVfs,
    pub(super) tasks: Tasks,
    pub(super) connect: Arc<dyn Connect>,
    pub(super) planted: Planted,
}

pub(super) fn open(deps: OpenDeps) -> Result<Mesh, String> {
    let OpenDeps {
        clock,
        chance,
        disk,
        tasks,
        connect,
        planted,
    } = deps;
    let log = EmbeddedLog::open(embedded::Options {
        vfs: planted.disk(disk.shared()),
        dir: "/mesh".into(),
        clock: clock.clone(),
        tasks: tasks.child("log"),
        mode: Mode::Inline,
        segment_bytes: Some(SEGMENT_BYTES),
        reserve: Reserve::default(),
    });
    let log: Arc<dyn Log> = Arc::new(log.map_err(|error| format!("no log: {error}"))?);
    let limits = heddle_mesh::event::http::Limits::default();
    let courier = Courier::new(CourierOptions {
        tasks: tasks.child("connections"),
        clock: clock.clone(),
        connect,
        limits: ConnectionLimits::default(),
        replies: limits,
        budget: heddle_rt::Budget::default(),
    });
    let options = Options {
        clock,
        chance,
        tasks,
        log: planted.log(log),
        courier,
        retention: Retention {
            age_max: Duration::from_secs(20),
            bytes_max: 4 * SEGMENT_BYTES,
        },
        quota: Quota::default(),
        limits,
        observer: None,
        mask: Arc::default(),
        heartbeat_sink: None,
    };
    Mesh::open(options).map_err(|error| format!("no mesh: {error}"))
}

/// An event as a publisher sends it, to a broker of the namespace.
pub(super) fn request(published: &Published, broker: &str) -> Request<Full<Bytes>> {
    Request::post(format!("/broker/ns/{broker}"))
        .header("ce-specversion", "1.0")
        .header("ce-id", &published.id)
        .header("ce-source", "/sim")
        .header("ce-type", published.type_)
        .header("ce-partitionkey", published.key.to_string())
        .header("content-type", "application/octet-stream")
        .body(Full::from(published.data.clone()))
        .expect("a request")
}

/// What the mesh says about itself adds up.
pub(super) fn check_accounts(mesh: &Mesh) -> Result<(), String> {
    for account in mesh.accounts(true).consumers {
        if account.difference() != 0 || account.dead_lettered != account.dead_letters {
            return Err(format!("an account does not balance: {account:?}"));
        }
    }
    Ok(())
}

/// What counts of the accounts, without what merely describes the moment.
pub(super) fn sums(mesh: &Mesh) -> Vec<Account> {
    let accounts = mesh.accounts(true).consumers.into_iter();
    accounts
        .map(|account| Account {
            schedule: String::new(),
            ..account
        })
        .collect()
}

/// The triggers and events of all dead letters. Each must be as it was sent.
pub(super) fn resting(mesh: &Mesh, book: &mut Book) -> BTreeSet<(String, usize)> {
    let page = mesh.dead_letters(&DeadLetterSelection::default(), 0, 500);
    assert!(page.next.is_none(), "a run has few dead letters");
    let mut resting = BTreeSet::new();
    for letter in page.items {
        let Some(trigger) = letter.consumer.strip_prefix("trigger/ns/") else {
            continue;
        };
        let Ok(detail) = mesh.dead_letter(&letter.name) else {
            book.blame(format!("dead letter {} cannot be read", letter.name));
            continue;
        };
        let data = data(&detail.event.value());
        let number = book.lies_dead(trigger, &letter.id, &data);
        resting.extend(number.map(|number| (trigger.to_owned(), number)));
    }
    resting
}

/// The bytes of an event in JSON, which are text if they happen to be text.
fn data(event: &Value) -> Vec<u8> {
    match (&event["data"], &event["data_base64"]) {
        (Value::String(text), _) => text.clone().into_bytes(),
        (_, Value::String(text)) => BASE64.decode(text).unwrap_or_default(),
        _ => Vec::new(),
    }
}
