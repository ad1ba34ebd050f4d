//! Manifests and indexes: of what an image consists, and for which machine. Pure: bytes in, descriptors out.
//!
//! Two families say the same in two sets of words, Docker's and the OCI's; both are read. What is found is not trusted:
//! every digest is checked for its form here, and for its content by whoever fetches it.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::digest::Digest;

/// Everything that is asked for when a manifest is. A registry that is asked for less may deny that an image exists.
pub const ACCEPT: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json";

pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub const OCI_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";

/// A manifest, index or configuration is not larger than this. The description in a configuration may have one megabyte,
/// and a third more as base64.
pub const DOCUMENT_BYTES_MAX: u64 = 4 << 20;
/// An image has no more layers than this; no tool makes more.
const LAYERS_MAX: usize = 256;
/// The index of one image has no more entries than this; there are fewer kinds of machines.
const ENTRIES_MAX: usize = 1024;

/// The index of a whole directory names many images. It is not larger than this, and names no more of them.
pub const LISTING_BYTES_MAX: u64 = 16 << 20;
pub const LISTING_ENTRIES_MAX: usize = 20_000;

/// What a digest of a manifest may stand for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    /// One image.
    Image(Manifest),
    /// The same image for several machines.
    Index(Vec<Descriptor>),
}

/// Of what an image consists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    pub config: Descriptor,
    /// Lowest first.
    pub layers: Vec<Descriptor>,
}

/// Content, by its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    pub media_type: String,
    pub digest: Digest,
    pub size: u64,
    pub platform: Option<Platform>,
    pub annotations: BTreeMap<String, String>,
}

/// A kind of machine.
#[derive(Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(default)]
pub struct Platform {
    pub os: String,
    pub architecture: String,
    pub variant: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    schema_version: u32,
    media_type: Option<String>,
    config: Option<RawDescriptor>,
    layers: Option<Vec<RawDescriptor>>,
    manifests: Option<Vec<RawDescriptor>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawDescriptor {
    #[serde(default)]
    media_type: String,
    digest: String,
    size: u64,
    platform: Option<Platform>,
    annotations: Option<BTreeMap<String, String>>,
}

impl RawDescriptor {
    fn check(self) -> Result<Descriptor, String> {
        Ok(Descriptor {
            digest: Digest::parse(&self.digest).map_err(|bad| bad.to_string())?,
            media_type: self.media_type,
            size: self.size,
            platform: self.platform,
            annotations: self.annotations.unwrap_or_default(),
        })
    }
}

/// Takes a manifest or index apart. `content_type` is what came with it; the document's own word counts more.
pub fn parse(bytes: &[u8], content_type: Option<&str>) -> Result<Document, String> {
    parse_within(ENTRIES_MAX, bytes, content_type)
}

/// Takes the index of a whole directory apart.
pub fn parse_listing(bytes: &[u8]) -> Result<Vec<Descriptor>, String> {
    match parse_within(LISTING_ENTRIES_MAX, bytes, Some(OCI_INDEX))? {
        Document::Index(entries) => Ok(entries),
        Document::Image(_) => Err("index.json is no index".to_owned()),
    }
}

fn parse_within(
    entries_max: usize,
    bytes: &[u8],
    content_type: Option<&str>,
) -> Result<Document, String> {
    let raw: Raw = serde_json::from_slice(bytes)
        .map_err(|error| format!("the manifest cannot be read: {error}"))?;
    if raw.schema_version != 2 {
        let version = raw.schema_version;
        return Err(format!("manifests of schema {version} are not supported"));
    }
    let declared = raw.media_type.as_deref().or(content_type);
    let index = match declared.map(essence) {
        Some(OCI_MANIFEST | DOCKER_MANIFEST) => false,
        Some(OCI_INDEX | DOCKER_LIST) => true,
        // Nothing useful was said, as in many OCI layouts. What is in it decides.
        _ => raw.manifests.is_some() && raw.config.is_none(),
    };
    if index {
        let entries = raw.manifests.ok_or("the index lists no manifests")?;
        let too_many = format!("the index has more than {entries_max} entries");
        return checked(entries, entries_max, &too_many).map(Document::Index);
    }
    let config = raw.config.ok_or("the manifest names no configuration")?;
    let layers = raw.layers.ok_or("the manifest names no layers")?;
    Ok(Document::Image(Manifest {
        config: config.check()?,
        layers: checked(layers, LAYERS_MAX, "the image has too many layers")?,
    }))
}

/// A media type without its parameters.
fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

fn checked(raw: Vec<RawDescriptor>, max: usize, too_many: &str) -> Result<Vec<Descriptor>, String> {
    if raw.len() > max {
        return Err(too_many.to_owned());
    }
    raw.into_iter().map(RawDescriptor::check).collect()
}

impl Descriptor {
    /// Whether this is the configuration of an image that could run, and not of something else that lives in registries.
    #[must_use]
    pub fn is_image_config(&self) -> bool {
        matches!(essence(&self.media_type), OCI_CONFIG | DOCKER_CONFIG)
    }

    fn is_runnable(&self) -> bool {
        let of_image = matches!(
            essence(&self.media_type),
            OCI_MANIFEST | DOCKER_MANIFEST | ""
        );
        // Attestations hide in indexes as images for no machine at all.
        let unknown = |platform: &Platform| platform.os == "unknown";
        of_image && !self.platform.as_ref().is_some_and(unknown)
    }
}

/// The entry of an index for this machine.
#[must_use]
pub fn for_this_machine(entries: &[Descriptor]) -> Option<&Descriptor> {
    for_machine(entries, architecture())
}

/// Any image of an index, to learn what it is about when there is none for this machine.
#[must_use]
pub fn for_any_machine(entries: &[Descriptor]) -> Option<&Descriptor> {
    entries.iter().find(|entry| entry.is_runnable())
}

fn for_machine<'a>(entries: &'a [Descriptor], architecture: &str) -> Option<&'a Descriptor> {
    let fits = |entry: &&Descriptor| {
        let platform = entry.platform.as_ref();
        platform.is_some_and(|it| it.os == "linux" && it.architecture == architecture)
    };
    let mut fitting = entries
        .iter()
        .filter(|entry| entry.is_runnable())
        .filter(fits);
    let first = fitting.clone().next();
    // Of several variants the plain one runs everywhere.
    fitting
        .find(|entry| {
            let variant = entry.platform.as_ref().and_then(|it| it.variant.as_deref());
            matches!(variant, None | Some("" | "v8"))
        })
        .or(first)
}

/// This machine, in the words of Go, which registries use.
#[must_use]
pub fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        other => other,
    }
}

/// How a layer is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    Plain,
    Gzip,
}

/// How a layer says it is packed; an error when it cannot be unpacked here.
pub fn packing(layer: &Descriptor) -> Result<Packing, String> {
    let media_type = essence(&layer.media_type);
    match media_type {
        "application/vnd.oci.image.layer.v1.tar"
        | "application/vnd.docker.image.rootfs.diff.tar" => Ok(Packing::Plain),
        "application/vnd.oci.image.layer.v1.tar+gzip"
        | "application/vnd.docker.image.rootfs.diff.tar.gzip" => Ok(Packing::Gzip),
        _ if media_type.ends_with("zstd") => Err(format!(
            "layer {} is packed with zstd, which is not supported; build the image with gzip",
            layer.digest
        )),
        _ => Err(format!(
            "layer {} is of the unknown kind {media_type:?}",
            layer.digest
        )),
    }
}

#[cfg(test)]
mod tests;
