//! A later version opens what an earlier one wrote: directories of released versions are kept in `tests/data-directories`.
//!
//! Each comes with what the version that wrote it said about it, and has to be found so: every resource, every event with
//! what became of it, dead letters byte for byte, accounts that balance; and what was pending is delivered. The same is
//! asked of a directory that today's version writes, so that what is kept next is known to be worth keeping:
//! `cargo xtask keep-data-directory` keeps that one.

mod archive;
mod story;

use std::path::{Path, PathBuf};

use heddle_api::ledger::Account;
use heddle_rt::{DiskVfs, Vfs as _};
use serde_json::Value;

use crate::events::stage::{self, BROKER};
use crate::events::subscriber::Subscriber;
use crate::harness::{Server, eventually_or_else};
use story::{Known, body, held, wanting};

/// Set by `cargo xtask keep-data-directory`: the file to write.
const KEEP_AS: &str = "HEDDLE_KEEP_DATA_DIRECTORY";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data-directories")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_of_today_can_be_kept() {
    let archive = story::make().await;
    is_as_it_was(&archive).await;
    if let Some(path) = std::env::var_os(KEEP_AS) {
        let path = PathBuf::from(path);
        DiskVfs.write_atomic(&path, &archive, 0o644).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_directory_that_was_kept_is_opened_and_complete() {
    let names = DiskVfs.list(&folder()).unwrap();
    let archives = names.iter().filter(|name| name.ends_with(".tar.gz"));
    let archives: Vec<&String> = archives.collect();
    assert!(!archives.is_empty(), "none was kept");
    for name in archives {
        println!("{name}");
        let known = is_as_it_was(&DiskVfs.read(&folder().join(name)).unwrap()).await;
        assert_eq!(*name, format!("{}.tar.gz", known.version));
    }
}

/// Opens a directory and finds in it what was known when it was packed.
async fn is_as_it_was(archive: &[u8]) -> Known {
    let place = tempfile::tempdir().unwrap();
    let (data, known) = archive::unpack(archive, place.path());
    let known: Known = serde_json::from_value(known).unwrap();
    let mut server = Server::keeping(data);
    server.launch().await;
    for (path, items) in &known.lists {
        let found = story::list(&server, path).await;
        for item in items {
            let it = found.iter().find(|found| same_object(found, item));
            let it = it.unwrap_or_else(|| panic!("{path} has lost {item:#}"));
            assert!(includes(it, item), "{path}: {it:#} was {item:#}");
        }
    }
    eventually_or_else("every event to be as it was", async || {
        let states = story::states(&server).await;
        match states == known.events {
            true => Ok(()),
            false => Err(format!("{states:#?} and not {:#?}", known.events)),
        }
    })
    .await;
    let now = story::known(&server).await;
    assert_eq!(now.dead_letters, known.dead_letters);
    for account in &known.accounts {
        let same = |found: &&Account| found.consumer == account.consumer;
        let found = now.accounts.iter().find(same);
        assert_eq!(figures(found.unwrap()), figures(account), "{account:#?}");
    }
    goes_on(&server, &known).await;
    known
}

fn same_object(one: &Value, other: &Value) -> bool {
    ["name", "namespace", "uid"]
        .iter()
        .all(|key| one["metadata"][key] == other["metadata"][key])
}

/// Whether everything of `part` is in `whole`: a later version may know more fields, with defaults.
fn includes(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => part
            .iter()
            .all(|(key, part)| whole.get(key).is_some_and(|whole| includes(whole, part))),
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len()
                && whole
                    .iter()
                    .zip(part)
                    .all(|(whole, part)| includes(whole, part))
        }
        (whole, part) => whole == part,
    }
}

/// What an account counts, in the order of its equation, and its dead letters.
fn figures(account: &Account) -> [u64; 8] {
    [
        account.matched,
        account.delivered,
        account.dead_lettered,
        account.expired,
        account.removed,
        account.lost,
        account.pending,
        account.dead_letters,
    ]
}

/// What had not ended is delivered with the bytes it was published with, and so are dead letters; and new events come in.
async fn goes_on(server: &Server, known: &Known) {
    let subscriber = Subscriber::start().await;
    for name in ["delivered", "dead", "retrying"] {
        let url = subscriber.url(&format!("/{name}"));
        server.apply_trigger(&wanting(name, &url)).await;
    }
    let waiting = held("waiting", &subscriber.url("/waiting"), "false");
    server.apply_trigger(&waiting).await;
    server
        .heddle(&["dead-letters", "redrive", "--all", "--yes"])
        .ok();
    server.publish(BROKER, "new", "delivered").await;
    let accounts = server.until_quiet().await.consumers;
    for (path, ids) in [
        ("/retrying", &["retrying-1"][..]),
        ("/waiting", &["waiting-1", "waiting-2"]),
        ("/dead", &["dead-1"]),
    ] {
        let mut received = subscriber.received(path);
        received.sort_by(|one, other| one.header("ce-id").cmp(&other.header("ce-id")));
        let bodies: Vec<_> = received.into_iter().map(|message| message.body).collect();
        assert_eq!(
            bodies,
            ids.iter().map(|id| body(id)).collect::<Vec<_>>(),
            "{path}"
        );
    }
    assert_eq!(
        subscriber.ids("/delivered"),
        ["new"],
        "nothing ended comes again"
    );
    for before in &known.accounts {
        let name = before.consumer.rsplit('/').next().unwrap();
        if before.consumer == format!("trigger/{}/{name}", stage::TEAM) {
            let now = stage::account_of(&accounts, name);
            let more = before.pending + before.dead_letters + u64::from(name == "delivered");
            assert_eq!(now.delivered, before.delivered + more, "{now:#?}");
        }
    }
}
