//! Parts of the event directory that are gone, old, exchanged or damaged: refused with a remedy, or made up for.

use std::path::{Path, PathBuf};

use heddle_rt::vfs::{DiskVfs, Open, Vfs as _};
use serde_json::json;

use super::stage::{self, BROKER, impatient, trigger};
use super::subscriber::{Manner, Subscriber};
use crate::harness::{Outcome, Server, eventually_or_else, heddle};

/// A server that was stopped with two delivered events, two dead letters, and three events that wait.
async fn stopped() -> (Server, Subscriber) {
    let mut server = stage::with_broker().await;
    let subscriber = Subscriber::start().await;
    server
        .apply_trigger(&trigger("well", &subscriber.url("/well"), json!({})))
        .await;
    subscriber.behave("/ill", Manner::Status(400));
    let delivery = json!({"delivery": impatient(0)});
    server
        .apply_trigger(&trigger("ill", &subscriber.url("/ill"), delivery))
        .await;
    for id in ["1", "2"] {
        server.publish(BROKER, id, "load").await;
    }
    server.until_dead(2).await;
    subscriber.until_received("/well", 2).await;
    subscriber.behave("/well", Manner::Hang);
    subscriber.behave("/ill", Manner::Hang);
    for id in ["3", "4", "5"] {
        server.publish(BROKER, id, "load").await;
    }
    subscriber.until_received("/well", 5).await;
    server.terminate().await;
    for path in ["/well", "/ill"] {
        subscriber.behave(path, Manner::Accept);
    }
    (server, subscriber)
}

fn events(server: &Server, name: &str) -> PathBuf {
    server.data().join("events").join(name)
}

/// A start that has to fail; gives what it said.
fn refused(server: &Server) -> String {
    let mut command = heddle();
    command.args(["serve", "--data-dir"]).arg(server.data());
    let outcome = Outcome::of(
        command
            .env("HEDDLE_LISTEN", "127.0.0.1:0")
            .output()
            .unwrap(),
    );
    assert_eq!(outcome.code, Some(1), "{}", outcome.err);
    outcome.err
}

fn repair(server: &Server, dry_run: bool) -> String {
    let data = server.data().display().to_string();
    let mut args = vec!["repair", "events", "--data-dir", &data];
    args.extend(dry_run.then_some("--dry-run"));
    server.heddle(&args).ok()
}

fn exchange(one: &Path, other: &Path) {
    let between = one.with_extension("between");
    DiskVfs.rename(one, &between).unwrap();
    DiskVfs.rename(other, one).unwrap();
    DiskVfs.rename(&between, other).unwrap();
}

fn copy(from: &Path, to: &Path) {
    DiskVfs.create_dir_all(to).unwrap();
    for name in DiskVfs.list(from).unwrap() {
        let bytes = DiskVfs.read(&from.join(&name)).unwrap();
        DiskVfs
            .write_atomic(&to.join(&name), &bytes, 0o600)
            .unwrap();
    }
}

/// Everything that waited is delivered, nothing is lost, and the doctor has nothing to say of loss.
async fn all_arrives(server: &mut Server, subscriber: &Subscriber) {
    server.launch().await;
    eventually_or_else("all events at the trigger that is well", async || {
        let ids = subscriber.tally("/well");
        let all = ["1", "2", "3", "4", "5"]
            .iter()
            .all(|id| ids.contains_key(*id));
        if all { Ok(()) } else { Err(format!("{ids:?}")) }
    })
    .await;
    assert_eq!(server.until_dead(2).await.total, 2);
    let accounts = server.until_quiet().await;
    assert!(accounts.consumers.iter().all(|account| account.lost == 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_is_gone_or_old_is_refused_until_the_loss_is_accepted() {
    let (mut server, _subscriber) = stopped().await;
    let (log, aside) = (events(&server, "log"), events(&server, "aside"));
    DiskVfs.rename(&log, &aside).unwrap();
    let said = refused(&server);
    assert!(said.contains("log is gone"), "{said}");
    assert!(said.contains("heddle repair events"), "{said}");
    let told = repair(&server, true);
    assert!(
        told.contains("trigger/team-a/well: up to 3 events"),
        "{told}"
    );
    assert!(told.contains("2 dead letters stay"), "{told}");
    assert!(
        refused(&server).contains("log is gone"),
        "a dry run accepts nothing"
    );
    // An older copy: without the last file that was written.
    copy(&aside, &log);
    let files = DiskVfs.list(&log).unwrap();
    let last = files.iter().rfind(|name| name.ends_with(".log")).unwrap();
    let bytes = DiskVfs.read(&log.join(last)).unwrap();
    assert!(!bytes.is_empty());
    DiskVfs.remove(&log.join(last)).unwrap();
    DiskVfs.remove(&log.join("manifest")).unwrap();
    let said = refused(&server);
    assert!(
        said.contains("log is gone") || said.contains("log ends at offset"),
        "{said}"
    );
    assert!(repair(&server, false).contains("accepted"));
    server.launch().await;
    assert_eq!(server.until_dead(2).await.total, 2);
    server.publish(BROKER, "new", "load").await;
    let accounts = server.until_quiet().await;
    let well = stage::account_of(&accounts.consumers, "well");
    assert_eq!((well.delivered, well.lost), (3, 3), "{well:?}");
    let doctor = server.heddle(&["doctor"]);
    assert!(
        doctor.out.contains("nobody knows what became of 3"),
        "{}",
        doctor.out
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exchanged_and_foreign_directories_are_refused_and_left_alone() {
    let (mut server, subscriber) = stopped().await;
    let (log, journal) = (events(&server, "log"), events(&server, "journal"));
    exchange(&log, &journal);
    let said = refused(&server);
    assert!(said.contains("exchanged"), "{said}");
    exchange(&log, &journal);
    let (mut other, _) = stopped().await;
    for name in ["journal", "journal-mirror"] {
        exchange(&events(&server, name), &events(&other, name));
    }
    for server in [&server, &other] {
        let said = refused(server);
        assert!(said.contains("two installations"), "{said}");
    }
    for name in ["journal", "journal-mirror"] {
        exchange(&events(&server, name), &events(&other, name));
    }
    all_arrives(&mut server, &subscriber).await;
    other.launch().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_journal_is_made_up_for_by_its_mirror() {
    let (mut server, subscriber) = stopped().await;
    let journal = events(&server, "journal");
    // One bit in every hundredth byte of every file of one copy.
    for name in DiskVfs.list(&journal).unwrap() {
        let file = DiskVfs
            .open(&journal.join(&name), Open::existing())
            .unwrap();
        for at in (0..file.len().unwrap()).step_by(100) {
            let mut byte = [0];
            file.read_at(at, &mut byte).unwrap();
            file.write_at(at, &[byte[0] ^ 1]).unwrap();
        }
    }
    all_arrives(&mut server, &subscriber).await;
    server.terminate().await;
    DiskVfs.rename(&journal, &events(&server, "aside")).unwrap();
    all_arrives(&mut server, &subscriber).await;
}
