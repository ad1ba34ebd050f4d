//! Images of bundles, made of directories: no builder, no daemon, and the same bytes from the same files everywhere.
//!
//! ```text
//!   bundle.yaml           the bundle's description (or apb.yml)
//!   rootfs/               the image's file system; rootfs/bin/entrypoint is the program
//!   heddle-bundle.yaml    optional: files of this machine that go into it, as {"include": [{"from": …, "to": …}]}
//! ```
//! Modes are reduced to whether a file can be executed; owners and times say nothing. Links are kept and never followed.
//! What becomes of an image, and whether its description can be offered, is decided where it is read.

mod lint;
mod settings;
mod skeleton;
mod tree;

use std::io;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};

use crate::images::{Digest, Image};

pub use lint::{Finding, Severity, lint};
pub use skeleton::init;

/// Labels with the description, ours and the one that Ansible playbook bundles have.
const LABELS: [&str; 2] = ["io.heddle.bundle.spec", "com.redhat.apb.spec"];

/// The contract between bundle and runner.
const RUNTIME_LABEL: &str = "com.redhat.apb.runtime";
const RUNTIME: &str = "2";

const VERSION_LABEL: &str = "org.opencontainers.image.version";

/// Unless the settings say otherwise.
const ENTRYPOINT: &str = "/bin/entrypoint";

/// Why a directory makes no image.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Its author has something to change.
    #[error("{0}")]
    Invalid(String),
    /// The disk.
    #[error("cannot {what}")]
    Io {
        /// What was tried.
        what: String,
        #[source]
        source: io::Error,
    },
}

impl Error {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

/// Makes an image of a directory.
pub fn image(directory: &Path) -> Result<Image, Error> {
    let (name, text) = settings::description(directory)?;
    let (_, description) = heddle_api::description::read(&text)
        .map_err(|why| Error::Invalid(format!("{name}: {why}")))?;
    let settings = settings::Settings::read(directory)?;
    let tar = tree::tar(directory, &settings)?;
    let layer = Bytes::from(gzip(&tar).map_err(Error::io("pack the layer"))?);
    let config = config(&text, description.version(), &settings, &digest(&tar));
    let manifest = manifest(&config, &layer);
    Ok(Image {
        manifest,
        config,
        layers: vec![layer],
    })
}

fn config(
    text: &str,
    version: Option<String>,
    settings: &settings::Settings,
    diff_id: &str,
) -> Bytes {
    let encoded = STANDARD.encode(text);
    let mut labels = json!({ RUNTIME_LABEL: RUNTIME });
    for label in LABELS {
        labels[label] = Value::from(encoded.as_str());
    }
    if let Some(version) = version {
        labels[VERSION_LABEL] = Value::from(version);
    }
    let entrypoint = settings
        .entrypoint
        .clone()
        .unwrap_or_else(|| vec![ENTRYPOINT.to_owned()]);
    let value = json!({
        "architecture": architecture(),
        "os": "linux",
        "config": {
            "Entrypoint": entrypoint,
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "WorkingDir": "/",
            "Labels": labels,
        },
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
    });
    Bytes::from(value.to_string())
}

fn manifest(config: &Bytes, layer: &Bytes) -> Bytes {
    let value = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", layer)],
    });
    Bytes::from(value.to_string())
}

fn descriptor(media_type: &str, bytes: &Bytes) -> Value {
    json!({"mediaType": media_type, "digest": digest(bytes), "size": bytes.len()})
}

/// The name of an architecture as Go spells it, which is how images do.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// No name and no time in the header, so the same bytes come out each time.
fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    use std::io::Write as _;

    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn digest(bytes: &[u8]) -> String {
    Digest::of(bytes).as_str().to_owned()
}

#[cfg(test)]
mod tests;
