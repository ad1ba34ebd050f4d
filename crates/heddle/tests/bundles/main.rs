//! The real binary, a real registry, real images and real sandboxes: bundles as their users have them.
//!
//! Asked for with `--features bundle-tests`. It needs the programs that `.ci/tools.sh bundles` unpacks, named by
//! `DOCKER_REGISTRY` and `BUSYBOX`, and a kernel that lets sandboxes be made; asking without them is a
//! failure, not a pass.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report")]

mod charts;
mod network;
mod outage;
mod registry;
mod removal;
mod tutorial;
mod versions;

#[path = "../e2e/harness.rs"]
mod harness;

use std::path::PathBuf;

use harness::{Server, eventually};
use heddle_rt::{DiskVfs, Vfs as _};
use serde_json::{Value, json};

use registry::Registry;

const TEAM: &str = "team-a";

/// A server with a namespace, and a registry that it reads.
async fn shop(registry: &Registry) -> Server {
    let server = Server::start_quietly().await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}});
    server
        .heddle_with(&["apply", "-f", "-"], &namespace.to_string())
        .ok();
    server
        .heddle(&[
            "registry",
            "add",
            "local",
            "--type",
            "apiv2",
            "--url",
            &registry.url(),
            "--allow",
            ".*",
            "--refresh",
            "3600",
        ])
        .ok();
    server
}

/// Reads the registry now.
fn sync(server: &Server) {
    server.heddle(&["registry", "sync", "local", "--wait"]).ok();
}

/// Waits until the catalog says something about an offering, or nothing any more.
async fn until_offered(server: &Server, name: &str, offered: bool) {
    eventually("the catalog follows the registry", async || {
        (catalog(server).contains(name) == offered).then_some(())
    })
    .await;
}

fn catalog(server: &Server) -> String {
    server.heddle(&["catalog", "-A", "-o", "json"]).ok()
}

/// Changes fields of an object, as kubectl would.
async fn patch(server: &Server, path: &str, body: &Value) {
    let request = http::Request::patch(path)
        .header(http::header::CONTENT_TYPE, "application/merge-patch+json");
    let answer = server
        .admin(request.body(body.to_string().into_bytes()).unwrap())
        .await;
    assert_eq!(answer.code, http::StatusCode::OK, "{answer:?}");
}

/// The object of an instance.
fn instance(server: &Server, id: &str) -> Value {
    let words = ["get", "serviceinstance", id, "-n", TEAM, "-o", "json"];
    serde_json::from_str(&server.heddle(&words).ok()).unwrap()
}

/// A bundle in a directory of its own: a description, and a shell script behind every action.
struct Bundle {
    folder: tempfile::TempDir,
}

impl Bundle {
    /// A bundle with one plan, whose program is `script`.
    fn new(name: &str, version: &str, script: &str) -> Self {
        let bundle = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        let description = format!(
            "version: 1.0\nname: {name}\ndescription: made by a test\nbindable: true\nasync: required\n\
             bundleVersion: {version:?}\nmetadata: {{displayName: {name}}}\n\
             plans:\n  - name: default\n    description: the only one\n    free: true\n    metadata: {{}}\n    \
             parameters:\n      - {{name: size, title: Size, type: int, default: 1, updatable: true}}\n"
        );
        bundle.write("bundle.yaml", &description, 0o644);
        bundle.write(
            "rootfs/bin/entrypoint",
            &format!("#!/bin/sh\n{script}\n"),
            0o755,
        );
        let busybox = DiskVfs.read(&program("BUSYBOX")).unwrap();
        bundle.write_bytes("rootfs/bin/busybox", &busybox, 0o755);
        for tool in ["sh", "cat", "echo", "sleep", "ls", "mkdir", "rm", "wc"] {
            std::os::unix::fs::symlink(
                "busybox",
                bundle.folder.path().join("rootfs/bin").join(tool),
            )
            .unwrap();
        }
        bundle
    }

    fn write(&self, path: &str, text: &str, mode: u32) {
        self.write_bytes(path, text.as_bytes(), mode);
    }

    fn write_bytes(&self, path: &str, bytes: &[u8], mode: u32) {
        let path = self.folder.path().join(path);
        DiskVfs.create_dir_all(path.parent().unwrap()).unwrap();
        DiskVfs.write_atomic(&path, bytes, mode).unwrap();
    }

    fn path(&self) -> &str {
        self.folder.path().to_str().unwrap()
    }

    /// Puts the bundle into a registry.
    fn push(&self, server: &Server, registry: &Registry, image: &str) {
        let to = format!("{}/{image}", registry.url());
        server
            .heddle(&["bundle", "push", self.path(), "--to", &to])
            .ok();
    }
}

/// A program that the suite needs, named by the environment.
#[expect(
    clippy::disallowed_methods,
    reason = "the programs of a test are no configuration"
)]
fn program(variable: &str) -> PathBuf {
    let path = std::env::var(variable);
    let path = path.unwrap_or_else(|_| {
        panic!("{variable} names no program; `.ci/tools.sh bundles` unpacks it")
    });
    PathBuf::from(path)
}
