//! Copies of a server, put back; and the page that tells people how, run line by line.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use heddle_rt::{DiskVfs, Vfs as _};
use serde_json::{Value, json};

use super::stage::{self, BROKER, trigger};
use super::subscriber::{Manner, Subscriber};
use crate::harness::{Outcome, Server, eventually, exists, heddle, read, write};

/// Events that are accepted before a backup is asked for.
const EVENTS: usize = 40;

/// Tried again and again, for longer than the test takes.
fn patient() -> Value {
    json!({"delivery": {"retry": 100, "backoffPolicy": "linear", "backoffDelay": "PT0.2S", "timeout": "PT20S"}})
}

fn run(args: &[&str]) -> Outcome {
    Outcome::of(heddle().args(args).output().unwrap())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

async fn version(server: &Server) -> u64 {
    let list = server.ask("GET", "/api/v1/namespaces", &[], b"").await;
    let list: Value = serde_json::from_slice(&list.body).unwrap();
    list["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_of_a_busy_server_brings_back_every_event_accepted_before_it() {
    let subscriber = Subscriber::start().await;
    subscriber.behave("/", Manner::Status(503));
    let mut server = stage::with_busy_broker().await;
    server
        .apply(&trigger("orders", &subscriber.url("/"), patient()))
        .await;
    server.until_ready("triggers", "orders").await;
    for number in 0..EVENTS {
        server
            .publish(BROKER, &format!("before-{number}"), "order")
            .await;
    }
    let folder = tempfile::tempdir().unwrap();
    let backup = folder.path().join("backup");
    // Events keep coming while it is made; those may be in it or not.
    let mut command = heddle();
    command
        .arg("backup")
        .arg(&backup)
        .arg("--data-dir")
        .arg(server.data());
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut making = command.spawn().unwrap();
    for number in 0.. {
        server
            .publish(BROKER, &format!("meanwhile-{number}"), "order")
            .await;
        if making.try_wait().unwrap().is_some() {
            break;
        }
    }
    let told = Outcome::of(making.wait_with_output().unwrap()).ok();
    assert!(told.contains("verified"), "{told}");
    let last = version(&server).await;
    let offset = server.accounts().await.log.next;
    // A second one into the same place harms nothing.
    let again = server.heddle(&["backup", text(&backup), "--data-dir", text(&server.data())]);
    assert_eq!(again.code, Some(4), "{again:?}");
    assert!(
        !exists(&server.data().join(".backup-resources.redb")),
        "what it took is gone"
    );
    assert!(server.terminate().await.success());

    let data = folder.path().join("restored");
    let told = run(&["restore", text(&backup), "--data-dir", text(&data)]).ok();
    assert!(told.contains("heddle serve --data-dir"), "{told}");
    for name in [
        "pki/ca.key",
        "admin.kubeconfig",
        "osb-credentials.json",
        "store/resources.redb",
    ] {
        let mode = std::fs::metadata(data.join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let again = run(&["restore", text(&backup), "--data-dir", text(&data)]);
    assert_eq!(again.code, Some(4), "a restore never overwrites: {again:?}");

    subscriber.behave("/", Manner::Accept);
    let mut restored = Server::keeping(data);
    restored.launch().await;
    assert_eq!(restored.token(), server.token());
    assert!(version(&restored).await > last, "versions go on");
    // The backup does not know what was accepted after it; whoever noted an offset of that finds nothing under it.
    restored.publish(BROKER, "after", "order").await;
    let next = restored.accounts().await.log.next;
    assert!(next > offset.max(1 << 32), "{next} may have been used");
    eventually("every event from before the backup", async || {
        let ids = subscriber.ids("/");
        let missing = (0..EVENTS).find(|number| !ids.contains(&format!("before-{number}")));
        missing.is_none().then_some(())
    })
    .await;
    eventually("the event from after the restore", async || {
        let ids = subscriber.ids("/");
        ids.iter().any(|id| id == "after").then_some(())
    })
    .await;
    eventually("all to be accounted for", async || {
        restored.heddle(&["doctor"]).code.filter(|code| *code == 0)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_as_it_was_written_is_not_restored() {
    let mut server = stage::with_broker().await;
    let folder = tempfile::tempdir().unwrap();
    let (backup, data) = (folder.path().join("backup"), folder.path().join("restored"));
    assert!(server.terminate().await.success());
    let offline = ["backup", text(&backup), "--offline", "--data-dir"];
    let source = server.data();
    run(&[&offline[..], &[text(&source)]].concat()).ok();
    let manifest = read(&backup.join("manifest.json"));
    let parsed: Value = serde_json::from_str(&manifest).unwrap();
    let names: Vec<&str> = parsed["entries"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|entry| {
            entry["sha256"]
                .as_str()
                .and_then(|_| entry["name"].as_str())
        })
        .collect();
    assert!(names.contains(&"store/resources.redb"), "{names:?}");
    assert!(
        names.iter().any(|name| name.starts_with("events/log/")),
        "{names:?}"
    );
    assert!(
        !names.contains(&"endpoints.json") && !names.contains(&"lock"),
        "{names:?}"
    );
    for name in names {
        let path = backup.join(name);
        let whole = DiskVfs.read(&path).unwrap();
        let mut bytes = whole.clone();
        let middle = bytes.len() / 2;
        match bytes.get_mut(middle) {
            Some(byte) => *byte ^= 1,
            None => bytes.push(1),
        }
        DiskVfs.write_atomic(&path, &bytes, 0o600).unwrap();
        let refused = run(&["restore", text(&backup), "--data-dir", text(&data)]);
        assert_eq!(refused.code, Some(1), "{name}: {refused:?}");
        assert!(refused.err.contains(name), "{name}: {}", refused.err);
        assert!(!exists(&data), "{name}: nothing is made of it");
        DiskVfs.write_atomic(&path, &whole, 0o600).unwrap();
    }
    write(
        &backup.join("manifest.json"),
        &manifest.replace("store/resources.redb", "../resources.redb"),
    );
    let refused = run(&["restore", text(&backup), "--data-dir", text(&data)]);
    assert!(refused.err.contains("../resources.redb"), "{refused:?}");
    DiskVfs.remove(&backup.join("manifest.json")).unwrap();
    let refused = run(&["restore", text(&backup), "--data-dir", text(&data)]);
    assert!(refused.err.contains("is no backup"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_store_is_refused_with_the_command_that_repairs_it() {
    let mut server = stage::with_broker().await;
    let _ = server.ask("GET", "/api/v1/namespaces", &[], b"").await;
    assert!(server.terminate().await.success());
    let data = server.data();
    let path = data.join("store/resources.redb");
    let mut bytes = DiskVfs.read(&path).unwrap();
    // One bit of the Namespace's name, everywhere it is: in the live page as well.
    let name = b"\"name\":\"team-a\"";
    let places: Vec<usize> = bytes
        .windows(name.len())
        .enumerate()
        .filter_map(|(at, window)| (window == name).then_some(at))
        .collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at + 9] ^= 1;
    }
    DiskVfs.write_atomic(&path, &bytes, 0o600).unwrap();
    let refused = run(&[
        "serve",
        "--data-dir",
        text(&data),
        "--listen",
        "127.0.0.1:0",
    ]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let command = format!(
        "heddle repair resources --data-dir {} --dry-run",
        data.display()
    );
    assert!(refused.err.contains(&command), "{}", refused.err);
    let refused_bytes = DiskVfs.read(&path).unwrap();
    let dry = run(&[
        "repair",
        "resources",
        "--data-dir",
        text(&data),
        "--dry-run",
    ])
    .ok();
    assert!(dry.contains("nothing was changed"), "{dry}");
    assert!(dry.contains("namespaces/team-a"), "{dry}");
    assert!(
        DiskVfs.read(&path).unwrap() == refused_bytes,
        "a dry run changed the store"
    );
    let told = run(&["repair", "resources", "--data-dir", text(&data)]).ok();
    assert!(told.contains("resources.damaged"), "{told}");
    let sound = run(&["repair", "resources", "--data-dir", text(&data)]).ok();
    assert!(sound.contains("nothing to repair"), "{sound}");
    server.launch().await;
    server.heddle(&["get", "brokers", "-n", "default"]).ok();
}

/// The lines of the page's shell blocks.
fn commands(page: &str) -> Vec<String> {
    let mut blocks = page.split("```").skip(1).step_by(2);
    let blocks = blocks
        .by_ref()
        .filter_map(|block| block.strip_prefix("sh\n"));
    blocks.flat_map(str::lines).map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_command_of_the_page_works_as_it_is_written() {
    let page = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/operating/backup.md"
    );
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("heddle-data");
    let mut server = Server::keeping(data);
    server.launch().await;
    let mut running = true;
    let commands = commands(&read(Path::new(page)));
    assert!(commands.len() >= 6, "{commands:?}");
    for line in commands {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[0], "heddle", "{line}");
        if words[1] == "serve" {
            let mut served = Server::keeping(folder.path().join(words[3]));
            served.launch().await;
            continue;
        }
        let needs_rest = words[1] == "repair" || words.contains(&"--offline");
        if needs_rest && std::mem::take(&mut running) {
            assert!(server.terminate().await.success());
        }
        let mut command = heddle();
        command.args(&words[1..]).current_dir(folder.path());
        let outcome = Outcome::of(command.output().unwrap());
        assert_eq!(outcome.code, Some(0), "{line}: {outcome:?}");
    }
}
