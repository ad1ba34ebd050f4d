//! Images of every kind that registries hold.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use heddle_bundles::images::{Digest, Image, manifest};
use serde_json::{Value, json};

/// Whose words an image is described in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Oci,
    Docker,
}

impl Family {
    fn words(self) -> [&'static str; 4] {
        match self {
            Self::Oci => [
                manifest::OCI_MANIFEST,
                manifest::OCI_INDEX,
                manifest::OCI_CONFIG,
                "application/vnd.oci.image.layer.v1.tar+gzip",
            ],
            Self::Docker => [
                "application/vnd.docker.distribution.manifest.v2+json",
                "application/vnd.docker.distribution.manifest.list.v2+json",
                "application/vnd.docker.container.image.v1+json",
                "application/vnd.docker.image.rootfs.diff.tar.gzip",
            ],
        }
    }
}

/// An image, ready to be put somewhere.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) media_type: &'static str,
    pub(crate) manifest: Bytes,
    pub(crate) blobs: Vec<Bytes>,
    /// Manifests that have to be there before.
    pub(crate) children: Vec<Self>,
}

impl Made {
    pub(crate) fn digest(&self) -> String {
        Digest::of(&self.manifest).to_string()
    }

    /// As whoever packs images hands them over.
    pub(crate) fn image(&self) -> Image {
        Image {
            manifest: self.manifest.clone(),
            config: self.blobs[0].clone(),
            layers: self.blobs[1..].to_vec(),
        }
    }
}

fn descriptor(media_type: &str, bytes: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": Digest::of(bytes).as_str(), "size": bytes.len()})
}

pub(crate) fn spec(name: &str, version: &str) -> String {
    format!(
        "version: 1.0\nname: {name}\ndescription: says hello\nbundleVersion: {version}\nplans:\n- name: default\n  description: the only one\n"
    )
}

/// A layer with one file.
pub(crate) fn layer(path: &str, text: &str) -> Bytes {
    let mut builder = tar::Builder::new(flate2::write::GzEncoder::new(
        Vec::new(),
        flate2::Compression::fast(),
    ));
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    header.set_mode(0o755);
    builder
        .append_data(&mut header, path, text.as_bytes())
        .unwrap();
    builder.into_inner().unwrap().finish().unwrap().into()
}

/// An image with these labels.
pub(crate) fn labelled(family: Family, labels: &Value, layer: Bytes) -> Made {
    let [manifest, _, config_type, layer_type] = family.words();
    let config = Bytes::from(
        json!({"architecture": manifest::architecture(), "os": "linux", "config": {"Labels": labels},
            "rootfs": {"type": "layers", "diff_ids": []}})
        .to_string(),
    );
    let document = json!({"schemaVersion": 2, "mediaType": manifest,
        "config": descriptor(config_type, &config), "layers": [descriptor(layer_type, &layer)]});
    Made {
        media_type: manifest,
        manifest: document.to_string().into(),
        blobs: vec![config, layer],
        children: Vec::new(),
    }
}

/// A sound bundle.
pub(crate) fn bundle_of(family: Family, name: &str, version: &str) -> Made {
    let labels = json!({"com.redhat.apb.spec": STANDARD.encode(spec(name, version))});
    labelled(family, &labels, layer("bin/entrypoint", version))
}

pub(crate) fn bundle(name: &str, version: &str) -> Made {
    bundle_of(Family::Oci, name, version)
}

/// An index for this machine and another.
pub(crate) fn index(family: Family, of: Made) -> Made {
    let [manifest, index, ..] = family.words();
    let mut entry = descriptor(manifest, &of.manifest);
    entry["platform"] = json!({"os": "linux", "architecture": manifest::architecture()});
    let document = json!({"schemaVersion": 2, "mediaType": index, "manifests": [entry]});
    Made {
        media_type: index,
        manifest: document.to_string().into(),
        blobs: Vec::new(),
        children: vec![of],
    }
}

/// Writes images as an OCI layout; each with its name.
pub(crate) fn write_layout(dir: &std::path::Path, images: &[(String, Made)]) {
    let blobs = dir.join("blobs/sha256");
    std::fs::create_dir_all(&blobs).unwrap();
    let write = |bytes: &Bytes| std::fs::write(blobs.join(Digest::of(bytes).hex()), bytes).unwrap();
    let mut entries = Vec::new();
    for (name, made) in images {
        made.blobs.iter().chain([&made.manifest]).for_each(write);
        let mut entry = descriptor(made.media_type, &made.manifest);
        entry["annotations"] = json!({"org.opencontainers.image.ref.name": name});
        entries.push(entry);
    }
    std::fs::write(dir.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
    let index = json!({"schemaVersion": 2, "manifests": entries});
    std::fs::write(dir.join("index.json"), index.to_string()).unwrap();
}
