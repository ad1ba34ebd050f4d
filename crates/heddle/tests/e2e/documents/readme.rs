//! The README, typed as it stands, by somebody who has nothing but Rust: no block of it is left out.
//!
//! What a test cannot wait for is stood in for: `cargo run --release --` runs the binary these tests were built with, and make
//! says what it would do. A server that runs until Ctrl-C gets its Ctrl-C once it is ready.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use heddle_rt::{DiskVfs, Vfs as _};
use rustix::process::{Pid, Signal, kill_process};

use super::{Desk, HAVE_HEDDLE, blocks, finished, root, typed_blocks};
use crate::harness::{eventually, exists, open_log, read, write};

/// Takes exactly what the README types, and writes down who to interrupt.
const CARGO: &str = "#!/bin/sh
[ \"$1 $2 $3\" = 'run --release --' ] || { echo \"the README types: cargo $*\" >&2; exit 64; }
shift 3
echo $$ > running
exec target/release/heddle \"$@\"
";

#[tokio::test(flavor = "multi_thread")]
async fn the_first_block_can_be_typed() {
    let [first, ..] = typed_of_the_readme();
    let terminal = Terminal::opened(&first, &[("HEDDLE_LISTEN", "127.0.0.1:0")]);
    let endpoints = terminal.desk.folder().join("heddle-data/endpoints.json");
    eventually("endpoints.json", async || {
        terminal.goes_on();
        exists(&endpoints).then_some(())
    })
    .await;
    let printed = terminal.interrupted().await;
    assert!(printed.contains("heddle is ready at http://127.0.0.1:"));
    assert!(
        printed.contains("xtask check --features") && printed.contains("heddle/kubectl-tests"),
        "make test tests nothing:\n{printed}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_minute_with_the_demo_can_be_typed() {
    let [_, demo, second, _] = typed_of_the_readme();
    let terminal = Terminal::opened(&demo, &[]);
    let guide = eventually("the demo's advice", async || {
        terminal.goes_on();
        let printed = terminal.printed();
        printed.contains("Ctrl-C stops").then_some(printed)
    })
    .await;
    let advised = |word: &str| {
        let mut lines = guide.lines().map(str::trim);
        let found = lines.find(|line| line.starts_with(word));
        found.unwrap_or_else(|| panic!("no {word} in:\n{guide}"))
    };
    let (placeholder, rest) = second.split_once('\n').unwrap();
    assert!(placeholder.starts_with("export PATH=… HEDDLE_DATA_DIR=… KUBECONFIG=…"));
    let events = advised("curl -i").split(['/', ' ']).nth(4).unwrap();
    let rest = rest.replace("127.0.0.1:4334", events);
    // The failing subscriber needs a moment to have failed for good.
    let failed = "until heddle dead-letters list | grep -q demo-3; do sleep 0.1; done";
    let text = format!("{}\n{failed}\n{rest}", advised("export"));
    let printed = finished("README.md", Desk::new().shell(&text));
    assert!(
        printed.contains("202 Accepted") && printed.contains("my-1  order.created from shop"),
        "{printed}"
    );
    terminal.interrupted().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_way_of_self_service_can_be_typed() {
    let [.., last] = typed_of_the_readme();
    assert!(last.starts_with(HAVE_HEDDLE), "{last}");
    let typed = typed_blocks("README.md", &last).await;
    assert!(typed.contains("instance orders is ready"), "{typed}");
}

/// What the README says to type: none of its blocks says that it is not run.
fn typed_of_the_readme() -> [String; 4] {
    let readme = read(&root().join("README.md"));
    let (blocks, skipped) = blocks(&readme);
    assert_eq!(skipped, 0, "a block of the README is not run");
    assert!(blocks[0].starts_with("cargo run --release -- serve "));
    assert!(blocks[0].contains("\nmake test "));
    blocks.try_into().unwrap_or_else(|blocks| {
        panic!("the README has other blocks than these tests run: {blocks:#?}")
    })
}

/// A terminal in which something runs until it is interrupted.
struct Terminal {
    desk: Desk,
    shell: parking_lot::Mutex<Child>,
    output: PathBuf,
}

impl Terminal {
    fn opened(text: &str, environment: &[(&str, &str)]) -> Self {
        let desk = Desk::new();
        let cargo = desk.folder().join("bin/cargo");
        DiskVfs.create_dir_all(cargo.parent().unwrap()).unwrap();
        write(&cargo, CARGO);
        std::fs::set_permissions(&cargo, PermissionsExt::from_mode(0o755)).unwrap();
        let output = desk.folder().join("printed");
        let mut shell = desk.shell(text);
        shell
            .envs(environment.iter().copied())
            .env("MAKEFLAGS", "n")
            .env("TMPDIR", desk.folder());
        shell.stdout(open_log(&output)).stderr(open_log(&output));
        let shell = parking_lot::Mutex::new(shell.stdin(Stdio::null()).spawn().unwrap());
        Self {
            desk,
            shell,
            output,
        }
    }

    fn printed(&self) -> String {
        read(&self.output)
    }

    /// Fails when the shell has ended.
    fn goes_on(&self) {
        let ended = self.shell.lock().try_wait().unwrap();
        assert!(ended.is_none(), "{ended:?}:\n{}", self.printed());
    }

    /// Ctrl-C for what runs; what was printed once the shell has gone through the rest.
    async fn interrupted(self) -> String {
        let pid = read(&self.desk.folder().join("running"));
        let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
        kill_process(pid, Signal::INT).unwrap();
        let ended = eventually("the end of the shell", async || {
            self.shell.lock().try_wait().unwrap()
        });
        let ended = ended.await;
        assert!(ended.success(), "{ended:?}:\n{}", self.printed());
        self.printed()
    }
}

impl Drop for Terminal {
    /// A test that failed leaves no server behind.
    fn drop(&mut self) {
        let running = self.desk.folder().join("running");
        let pid = exists(&running).then(|| read(&running).trim().parse().ok());
        let mut shell = self.shell.lock();
        if shell.try_wait().unwrap().is_none() {
            if let Some(pid) = pid.flatten().and_then(Pid::from_raw) {
                kill_process(pid, Signal::KILL).unwrap_or_default();
            }
            shell.kill().unwrap();
            shell.wait().unwrap();
        }
    }
}
