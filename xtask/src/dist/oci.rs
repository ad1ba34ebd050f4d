//! An image as a layout of the Open Container Initiative in one tar, made without an engine: one layer, the program and little
//! more.
//!
//! ```text
//!   oci-layout, index.json ─> manifest ─┬─> configuration (user, ports, command)
//!                                       └─> layer: /usr/bin/heddle, /etc/passwd, /var/lib/heddle, /tmp
//! ```
//! Each arrow is a digest and a size. There is no shell and no certificate authority in it: whoever delivers to `https`
//! subscribers mounts the machine's `/etc/ssl/certs`.

use std::collections::BTreeMap;
use std::io::Read as _;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::archive::{ROOT, Tar, gzip};
use super::install::{Files, PROGRAM};
use super::{Release, hex};

/// Nobody else has this number, by the custom of images.
const USER: u64 = 65_532;
const DATA: &str = "var/lib/heddle";

const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const CONFIGURATION: &str = "application/vnd.oci.image.config.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Blobs by the hex of their digest.
type Blobs = BTreeMap<String, Vec<u8>>;

pub(super) fn made(release: &Release, files: &Files) -> Result<Vec<u8>> {
    let mut blobs = Blobs::new();
    let plain = layer(release, files)?;
    let layer = put(&mut blobs, LAYER, gzip(&plain)?);
    let configuration = serde_json::to_vec(&configuration(release, &digest(&plain))?)?;
    let configuration = put(&mut blobs, CONFIGURATION, configuration);
    let manifest = json!({
        "schemaVersion": 2, "mediaType": MANIFEST, "config": configuration, "layers": [layer],
        "annotations": {"org.opencontainers.image.version": release.version},
    });
    let mut manifest = put(&mut blobs, MANIFEST, serde_json::to_vec(&manifest)?);
    manifest["platform"] = json!({"architecture": release.elf.oci(), "os": "linux"});
    manifest["annotations"] = json!({"org.opencontainers.image.ref.name": release.version});
    let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [manifest]});
    let mut tar = Tar::new(release.epoch);
    tar.file("oci-layout", 0o644, br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    tar.file("index.json", 0o644, &serde_json::to_vec(&index)?)?;
    for (name, bytes) in &blobs {
        tar.file(&format!("blobs/sha256/{name}"), 0o644, bytes)?;
    }
    tar.finish()
}

/// The files of the image. The folder for data belongs to the user that the program runs as.
fn layer(release: &Release, files: &Files) -> Result<Vec<u8>> {
    let program = files.get(PROGRAM).context("there is no program")?;
    let mut tar = Tar::new(release.epoch);
    let users = format!("root:x:0:0:root:/:/\nheddle:x:{USER}:{USER}:heddle:/{DATA}:/\n");
    let groups = format!("root:x:0:\nheddle:x:{USER}:\n");
    tar.file("etc/passwd", 0o644, users.as_bytes())?;
    tar.file("etc/group", 0o644, groups.as_bytes())?;
    tar.folder("tmp", 0o1777, ROOT)?;
    tar.file(PROGRAM, program.mode, &program.bytes)?;
    tar.folder("var", 0o755, ROOT)?;
    tar.folder("var/lib", 0o755, ROOT)?;
    tar.folder(DATA, 0o700, (USER, USER))?;
    tar.finish()
}

fn configuration(release: &Release, layer: &str) -> Result<Value> {
    let created = jiff::Timestamp::from_second(release.epoch.try_into()?)?;
    Ok(json!({
        "created": created.to_string(),
        "architecture": release.elf.oci(),
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "Entrypoint": [format!("/{PROGRAM}")],
            "Cmd": ["serve"],
            "Env": [format!("HEDDLE_DATA_DIR=/{DATA}"), "HEDDLE_LOG_FORMAT=json", "PATH=/usr/bin"],
            "ExposedPorts": {"4333/tcp": {}, "4334/tcp": {}},
            "Volumes": {format!("/{DATA}"): {}},
            "WorkingDir": format!("/{DATA}"),
            "StopSignal": "SIGTERM",
        },
        "rootfs": {"type": "layers", "diff_ids": [layer]},
        "history": [{"created": created.to_string(), "created_by": "cargo xtask dist"}],
    }))
}

/// Adds a blob; what refers to it.
fn put(blobs: &mut Blobs, media_type: &str, bytes: Vec<u8>) -> Value {
    let digest = digest(&bytes);
    let descriptor = json!({"mediaType": media_type, "digest": digest, "size": bytes.len()});
    blobs.insert(digest.trim_start_matches("sha256:").to_owned(), bytes);
    descriptor
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(bytes)))
}

/// Reads an image back and follows every arrow in it: each blob is there, of the size and digest it is referred to by, the
/// layer unpacks to what the configuration says, and there is nothing else.
pub(super) fn verify(image: &[u8]) -> Result<()> {
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for entry in tar::Archive::new(image).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_string_lossy().into_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        if entry.header().entry_type().is_file() {
            files.insert(path, bytes);
        }
    }
    let layout: Value = serde_json::from_slice(files.get("oci-layout").context("no oci-layout")?)?;
    ensure!(
        layout["imageLayoutVersion"] == "1.0.0",
        "oci-layout says {layout}"
    );
    let index: Value = serde_json::from_slice(files.get("index.json").context("no index.json")?)?;
    let manifest: Value = serde_json::from_slice(blob(&files, &index["manifests"][0])?)?;
    let configuration: Value = serde_json::from_slice(blob(&files, &manifest["config"])?)?;
    let packed = blob(&files, &manifest["layers"][0])?;
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(packed).read_to_end(&mut plain)?;
    let said = &configuration["rootfs"]["diff_ids"][0];
    ensure!(*said == digest(&plain), "the layer is not what {said} says");
    ensure!(
        files.len() == 5,
        "there are {} files instead of 5",
        files.len()
    );
    Ok(())
}

/// What a descriptor refers to.
fn blob<'a>(files: &'a BTreeMap<String, Vec<u8>>, descriptor: &Value) -> Result<&'a [u8]> {
    let said = descriptor["digest"]
        .as_str()
        .context("a digest is missing")?;
    let path = format!("blobs/{}", said.replace(':', "/"));
    let bytes = files
        .get(&path)
        .with_context(|| format!("there is no {path}"))?;
    ensure!(
        digest(bytes) == said,
        "{path} has the digest {}",
        digest(bytes)
    );
    ensure!(
        descriptor["size"] == bytes.len(),
        "{path} has {} bytes and not {}",
        bytes.len(),
        descriptor["size"]
    );
    Ok(bytes)
}
