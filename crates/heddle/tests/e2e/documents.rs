//! What documents tell people to type, typed: block after block of a page, in a shell, against a server.
//!
//! A block that cannot be run says so and why, in a comment before it that begins with `not run:`. Nothing is changed in what is
//! typed but addresses: the tests have ports of their own.

mod readme;

use std::path::{Path, PathBuf};
use std::process::Command;

use heddle_rt::{DiskVfs, Vfs as _};

use crate::events::subscriber::Subscriber;
use crate::harness::{Outcome, Server, heddle, read, write};

/// What the README says before it types `heddle` for the first time; whoever reads another page has done that.
const HAVE_HEDDLE: &str = "export PATH=$PWD/target/release:$PATH";

/// Before the blocks of a page, what its text takes for granted.
const SHOP: &str = "heddle apply -f examples/
heddle provision order-events-4ad9b -n team-a --id orders --wait
heddle apply -f - <<'END'
apiVersion: eventing.knative.dev/v1
kind: Trigger
metadata: {name: orders, namespace: team-a}
spec: {broker: default, subscriber: {uri: \"http://127.0.0.1:8080/orders\"}}
END
";

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_events_can_be_typed() {
    let typed = typed("docs/operating/events.md", SHOP).await;
    assert!(typed.contains("order-17 accepted"), "{typed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_signed_deliveries_can_be_typed() {
    let typed = typed("docs/operating/signing.md", SHOP).await;
    assert!(typed.contains("whsec_"), "{typed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_publishers_can_be_typed() {
    typed("docs/operating/publishers.md", SHOP).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_access_can_be_typed() {
    let typed = typed("docs/operating/access.md", "").await;
    assert!(typed.contains("/ui/#code="), "{typed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_who_changed_what_can_be_typed() {
    let typed = typed("docs/operating/audit.md", SHOP).await;
    assert!(typed.contains("trigger/team-a/orders"), "{typed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_other_machines_can_be_typed() {
    typed("docs/operating/remote.md", "").await;
}

/// Every page with something to type is either run here or says of each block why it is not.
#[test]
fn no_page_is_forgotten() {
    let run = [
        "README.md",
        "docs/operating/events.md",
        "docs/operating/signing.md",
        "docs/operating/publishers.md",
        "docs/operating/access.md",
        "docs/operating/audit.md",
        "docs/operating/remote.md",
    ];
    // Commands of another author's, who runs them elsewhere.
    let elsewhere = [
        "docs/operating/backup.md",
        "docs/operating/data-directory.md",
    ];
    for page in pages() {
        let name = page
            .strip_prefix(root())
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        if run.contains(&name.as_str()) || elsewhere.contains(&name.as_str()) {
            continue;
        }
        let (blocks, _) = blocks(&read(&page));
        assert_eq!(blocks, [""; 0], "{name}: run it, or say why it is not run");
    }
}

#[test]
fn blocks_are_found_and_reasons_are_counted() {
    let page = "```\ndrawing ─>\n```\n```\n$ heddle get app\nNAME\n$ heddle apply -f - <<'END'\na: b\nEND\nno output\n```\n<!-- not run: no -->\n```sh\nrm\n```\n```sh\nls \\\n  -l\n```\n";
    let (found, skipped) = blocks(page);
    assert_eq!(
        found,
        [
            "heddle get app\nheddle apply -f - <<'END'\na: b\nEND\n",
            "ls \\\n  -l\n"
        ]
    );
    assert_eq!(skipped, 1);
}

/// Runs a page; what its commands printed.
async fn typed(page: &str, before: &str) -> String {
    let (blocks, _) = blocks(&read(&root().join(page)));
    assert!(!blocks.is_empty(), "{page} has nothing to type");
    let text = format!("{HAVE_HEDDLE}\n{before}\n{}", blocks.join("\n"));
    typed_blocks(page, &text).await
}

/// Runs what a page says against a server that is there already.
async fn typed_blocks(page: &str, text: &str) -> String {
    let (server, subscriber) = (Server::start_quietly().await, Subscriber::start().await);
    let desk = Desk::new();
    std::os::unix::fs::symlink(server.data(), desk.folder().join("heddle-data")).unwrap();
    let text = text
        .replace("http://127.0.0.1:4333", &server.control)
        .replace("http://127.0.0.1:4334", &server.events)
        .replace("http://127.0.0.1:8080", &subscriber.url(""));
    let mut bash = desk.shell(&text);
    bash.env("KUBECONFIG", server.kubeconfig())
        .env("HEDDLE_DATA_DIR", server.data());
    finished(page, bash)
}

/// Waits for a shell that waits for commands that wait for servers, all of them other processes: this thread has nothing else
/// to do.
fn finished(page: &str, mut bash: Command) -> String {
    let outcome = Outcome::of(tokio::task::block_in_place(|| bash.output().unwrap()));
    let (out, err) = (&outcome.out, &outcome.err);
    assert_eq!(outcome.code, Some(0), "{page}:\n{out}\n{err}");
    outcome.out
}

/// A folder as somebody has it who has cloned the repository and built it.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        let link = |target: PathBuf, name: &str| {
            std::os::unix::fs::symlink(target, desk.folder().join(name)).unwrap();
        };
        link(root().join("examples"), "examples");
        link(root().join("Makefile"), "Makefile");
        let built = desk.folder().join("target/release");
        DiskVfs.create_dir_all(&built).unwrap();
        link(heddle().get_program().into(), "target/release/heddle");
        desk
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    /// A shell in this folder, which does not know `heddle` yet, that types the text and stops where a command fails.
    fn shell(&self, text: &str) -> Command {
        let script = self.folder().join("typed.sh");
        write(&script, &format!("set -euxo pipefail\n{text}"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let bin = [self.folder().join("bin")];
        let path = std::env::join_paths(bin.into_iter().chain(std::env::split_paths(&path)));
        let mut bash = Command::new("bash");
        bash.arg(&script).current_dir(self.folder());
        for (name, value) in heddle().get_envs() {
            match value {
                Some(value) => bash.env(name, value),
                None => bash.env_remove(name),
            };
        }
        bash.env("PATH", path.unwrap());
        bash
    }
}

/// What can be typed, block by block, and how many blocks say that they are not run.
fn blocks(page: &str) -> (Vec<String>, usize) {
    let (mut found, mut skipped) = (Vec::new(), 0);
    let mut reason = false;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(why) = line.strip_prefix("<!-- not run:") {
            assert!(
                why.trim_end_matches("-->").trim().len() > 1,
                "a reason is missing"
            );
            reason = true;
            continue;
        }
        let Some(language) = line.strip_prefix("```") else {
            reason &= line.is_empty();
            continue;
        };
        let block: Vec<&str> = lines
            .by_ref()
            .take_while(|line| !line.starts_with("```"))
            .collect();
        let commands = commands(language, &block);
        match std::mem::take(&mut reason) {
            true => skipped += 1,
            false => found.extend(Some(commands).filter(|commands| !commands.is_empty())),
        }
    }
    (found, skipped)
}

/// In a block of `sh` all of it; elsewhere what stands behind a prompt, with what continues it.
fn commands(language: &str, block: &[&str]) -> String {
    let mut text = String::new();
    let mut until: Option<String> = None;
    for line in block {
        let typed = line.strip_prefix("$ ");
        let goes_on = until.is_some() || text.ends_with("\\\n");
        if let Some(line) = typed.or_else(|| (language == "sh" || goes_on).then_some(*line)) {
            text.push_str(line);
            text.push('\n');
        }
        if until.as_deref() == Some(*line) {
            until = None;
        }
        if let Some((_, word)) = line.split_once("<<'") {
            until = word.split('\'').next().map(str::to_owned);
        }
    }
    text
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for name in DiskVfs.list(&folder).unwrap() {
            let path = folder.join(name);
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    pages.extend((path.extension().is_some_and(|it| it == "md")).then_some(path))
                }
            }
        }
    }
    pages
}
