//! Images of bundles, as many as are needed: each says something else of itself, and all have the same small layer.
//!
//! One is packed from a directory as `heddle bundle push` packs it; the others are this one with another description.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::Context as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use heddle_api::evidence::Credentials;
use heddle_bundles::images::{Digest, Image, manifest};
use heddle_bundles::pack;
use heddle_bundles::registries::label::DESCRIPTIONS;
use heddle_bundles::registries::{self, ClientDeps, Destination, Patience};
use heddle_rt::net::dial::Network;
use heddle_rt::net::egress::Egress;
use heddle_rt::{OnError, Tasks};
use serde_json::{Value, json};

use heddle::wire::World;

const TAG: &str = "latest";
/// How many images are pushed at once.
const PUSHERS: u32 = 16;
/// Nothing of it ever runs.
const PROGRAM: &[u8] = b"#!/bin/sh\n";

/// Makes images.
#[derive(Clone, Debug)]
pub(super) struct Images(Image);

impl Images {
    /// Packs the first one, in a directory that is made for it.
    pub(super) fn pack(world: &World, dir: &Path) -> anyhow::Result<Self> {
        let bin = dir.join("rootfs").join("bin");
        world.vfs.create_dir_all(&bin)?;
        let text = description(0);
        (world.vfs).write_atomic(&dir.join("bundle.yaml"), text.as_bytes(), 0o644)?;
        (world.vfs).write_atomic(&bin.join("entrypoint"), PROGRAM, 0o755)?;
        let image = pack::image(dir);
        image.map(Self).context("cannot pack a bundle")
    }

    /// The image of that number.
    pub(super) fn one(&self, number: u32) -> anyhow::Result<Image> {
        let Self(base) = self;
        let mut config: Value = serde_json::from_slice(&base.config)?;
        let encoded = STANDARD.encode(description(number));
        for label in DESCRIPTIONS {
            config["config"]["Labels"][label] = json!(encoded);
        }
        let config = Bytes::from(config.to_string());
        let mut document: Value = serde_json::from_slice(&base.manifest)?;
        document["config"]["digest"] = json!(Digest::of(&config).as_str());
        document["config"]["size"] = json!(config.len());
        Ok(Image {
            manifest: Bytes::from(document.to_string()),
            config,
            layers: base.layers.clone(),
        })
    }

    /// Puts so many of them into a registry, each into a repository of its own.
    pub(super) async fn push(&self, world: &World, url: &str, count: u32) -> anyhow::Result<()> {
        let (tasks, next) = (Tasks::new("pushers"), Arc::new(AtomicU32::new(0)));
        let deps = ClientDeps {
            tasks: Tasks::new("push"),
            clock: world.clock.clone(),
            chance: world.chance.clone(),
            connect: Arc::new(Network::new(world.clock.clone(), Egress::default())),
            patience: Patience::default(),
        };
        for pusher in 0..PUSHERS.min(count) {
            let (images, deps, next) = (self.clone(), deps.clone(), next.clone());
            let url = url.to_owned();
            tasks.spawn(&format!("pusher-{pusher}"), OnError::Report, async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return Ok::<(), anyhow::Error>(());
                    }
                    let to = Destination {
                        url: url.clone(),
                        repository: repository(number),
                        tag: TAG.to_owned(),
                        credentials: Credentials::None,
                        skip_verify_tls: false,
                    };
                    let image = images.one(number)?;
                    Box::pin(registries::push_to(&deps, &to, &image)).await?;
                }
            });
        }
        tasks.join().await;
        match tasks.failures().into_iter().next() {
            Some(failure) => Err(anyhow::Error::new(failure).context("cannot push an image")),
            None => Ok(()),
        }
    }

    /// Puts some of them into a directory in the OCI image layout.
    pub(super) fn lay_out(&self, dir: &Path, numbers: Range<u32>) -> anyhow::Result<()> {
        let blobs = dir.join("blobs").join("sha256");
        make_dir(&blobs)?;
        let mut entries = Vec::new();
        for number in numbers {
            let image = self.one(number)?;
            // The layer is left out: it is fetched for instances only.
            for bytes in [&image.manifest, &image.config] {
                write(&blobs.join(Digest::of(bytes).hex()), bytes)?;
            }
            let name = format!("{}:{TAG}", repository(number));
            entries.push(json!({
                "mediaType": manifest::OCI_MANIFEST,
                "digest": image.digest().as_str(),
                "size": image.manifest.len(),
                "annotations": {"org.opencontainers.image.ref.name": name},
            }));
        }
        let index = json!({"schemaVersion": 2, "manifests": entries});
        write(&dir.join("index.json"), index.to_string().as_bytes())?;
        write(
            &dir.join("oci-layout"),
            br#"{"imageLayoutVersion": "1.0.0"}"#,
        )
    }
}

fn repository(number: u32) -> String {
    format!("bench/bundle-{number:05}")
}

/// About as long as descriptions are: two plans, each with parameters.
fn description(number: u32) -> String {
    let plan = |name: &str, free: bool| {
        let parameter = |name: &str, title: &str, kind: &str| json!({"name": name, "title": title, "type": kind, "required": true, "updatable": true});
        json!({
            "name": name,
            "description": format!("The {name} plan of bundle {number}, for those who want it {name}"),
            "free": free,
            "metadata": {"displayName": name},
            "parameters": [
                parameter("size", "How much room it has, in gigabytes", "int"),
                parameter("database", "What it is called inside", "string"),
                parameter("persistent", "Whether it outlives a restart", "boolean"),
            ],
        })
    };
    // YAML can be written as JSON.
    json!({
        "version": "1.0",
        "name": format!("bundle-{number:05}"),
        "description": format!("Bundle {number} of a benchmark, which offers a service that does nothing"),
        "bindable": true,
        "async": "optional",
        "bundleVersion": "1.0.0",
        "tags": ["bench", "nothing"],
        "metadata": {
            "displayName": format!("Bundle {number}"),
            "longDescription": "Its description is about as long as those of real bundles are, and its image is as small as can be",
            "documentationUrl": "https://example.com/documentation",
            "providerDisplayName": "Benchmark",
        },
        "plans": [plan("small", true), plan("large", false)],
    })
    .to_string()
}

#[expect(
    clippy::disallowed_methods,
    reason = "thousands of files that go with the run need no sync"
)]
fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

#[expect(
    clippy::disallowed_methods,
    reason = "it goes with the run and needs no sync"
)]
fn make_dir(path: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))
}
