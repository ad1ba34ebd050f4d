//! Images, kept by digest: what an instance was made from stays at hand, whatever becomes of its registry.
//!
//! ```text
//!   blobs/HEX    verified content: manifests, configurations, layers
//!   kept/HEX     says that every part of the image with this manifest is among the blobs
//!   roots/HEX/   the image's file system, unpacked
//!   tmp/         what is not finished, and goes when the store is opened
//! ```
//! A name in `blobs` or `roots` appears when its content is complete, verified and safe on the disk, never before; a crash
//! leaves only what `tmp` holds. Sizes are bounded for each blob, each image and the whole, so that no image can fill the
//! disk. Where content comes from is left to [`registries`](crate::registries). All calls block.

#![expect(
    clippy::disallowed_methods,
    reason = "unpacked images have modes and symlinks, which the port to files knows nothing of"
)]

mod config;
mod digest;
#[doc(hidden)]
pub mod fuzzing;
mod hold;
mod layer;
pub mod manifest;
pub(crate) mod tree;

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

pub use config::Config;
pub use digest::{BadDigest, Digest, Hasher};
pub use hold::{Hold, Writer};
use layer::Budget;
use manifest::{Document, Manifest};

/// A whole image in memory, as it is made or pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Exactly the bytes whose digest names the image.
    pub manifest: Bytes,
    pub config: Bytes,
    /// Lowest first, packed as the manifest says.
    pub layers: Vec<Bytes>,
}

impl Image {
    /// What the image is named by.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&self.manifest)
    }
}

/// What images may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// One blob.
    pub blob_bytes_max: u64,
    /// One image: the blobs it consists of, and as much again unpacked.
    pub image_bytes_max: u64,
    /// Files, directories and links in all layers of one image.
    pub entries_max: u64,
    /// All blobs and unpacked images together.
    pub total_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            blob_bytes_max: 1 << 30,
            image_bytes_max: 4 << 30,
            entries_max: 200_000,
            total_bytes_max: 20 << 30,
        }
    }
}

/// Why the store cannot do what it was asked for.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It has to be fetched first.
    #[error("image {0} is not kept here")]
    NotKept(String),
    /// Somebody sent other content than was asked for.
    #[error("content for {expected} has the digest {found}")]
    Mismatch { expected: Digest, found: String },
    /// What the image consists of is not allowed. It will be the same next time.
    #[error("{0}")]
    Refused(String),
    /// There is no room left.
    #[error(
        "no room for {wanted} more bytes: images take {used} of {max} bytes; raise the quota, or remove instances and \
         bundles that are no longer needed"
    )]
    Full { wanted: u64, used: u64, max: u64 },
    #[error("cannot {what}")]
    Io { what: String, source: io::Error },
}

impl Error {
    /// With what caused it, for people.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Io { source, .. } => format!("{self}: {source}"),
            _ => self.to_string(),
        }
    }
}

impl From<BadDigest> for Error {
    fn from(bad: BadDigest) -> Self {
        Self::Refused(bad.to_string())
    }
}

/// Adds what was being done.
fn doing(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    let what = what.into();
    move |source| Error::Io { what, source }
}

/// The images that are kept. Cheap to clone; clones are the same store. Only one process may open a directory.
#[derive(Clone, Debug)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    limits: Limits,
    state: Mutex<State>,
    /// Taken before `state` by whoever reads layers or removes them.
    unpacking: Mutex<()>,
}

#[derive(Debug, Default)]
struct State {
    kept: HashSet<Digest>,
    /// Bytes of all blobs and roots, with those that are promised to open writers.
    used: u64,
    /// What images need that are being fetched.
    held: HashMap<u64, HashSet<Digest>>,
    /// Names in `tmp`, and holds.
    next: u64,
}

const BLOBS: &str = "blobs";
const KEPT: &str = "kept";
const ROOTS: &str = "roots";
const TMP: &str = "tmp";

impl Store {
    /// Opens the store in a directory, which is made when it is missing. What a crash left unfinished is removed.
    pub fn open(dir: &Path, limits: Limits) -> Result<Self, Error> {
        for part in [BLOBS, KEPT, ROOTS, TMP] {
            let path = dir.join(part);
            std::fs::create_dir_all(&path).map_err(doing(format!("make {}", path.display())))?;
        }
        tree::empty(&dir.join(TMP)).map_err(doing("remove unfinished images"))?;
        let mut used = 0;
        for part in [BLOBS, ROOTS] {
            used += tree::size(&dir.join(part)).map_err(doing("measure the images"))?;
        }
        let store = Self {
            inner: Arc::new(Inner {
                dir: dir.to_owned(),
                limits,
                state: Mutex::new(State {
                    used,
                    ..State::default()
                }),
                unpacking: Mutex::default(),
            }),
        };
        let names = tree::names(&dir.join(KEPT)).map_err(doing("list the images"))?;
        for digest in names.iter().filter_map(|name| Digest::from_hex(name)) {
            match store.parts(&digest) {
                Ok(parts) if parts.iter().all(|part| store.blob_path(part).is_file()) => {
                    store.inner.state.lock().kept.insert(digest);
                }
                _ => {
                    tracing::warn!(%digest, "an image that was kept is incomplete, and fetched again when it is needed")
                }
            }
        }
        Ok(store)
    }

    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.inner.dir
    }

    #[must_use]
    pub fn limits(&self) -> Limits {
        self.inner.limits
    }

    /// Bytes in use, and how many may be.
    #[must_use]
    pub fn usage(&self) -> (u64, u64) {
        (
            self.inner.state.lock().used,
            self.inner.limits.total_bytes_max,
        )
    }

    /// Whether all of an image is kept.
    #[must_use]
    pub fn is_kept(&self, manifest_digest: &str) -> bool {
        Digest::parse(manifest_digest)
            .is_ok_and(|digest| self.inner.state.lock().kept.contains(&digest))
    }

    /// Begins to keep an image. Until the hold is dropped, nothing that it needs is let go.
    #[must_use]
    pub fn hold(&self) -> Hold {
        Hold::new(self.clone())
    }

    /// Lets everything go that none of these images needs, and that is not being fetched.
    pub fn keep_only(&self, manifest_digests: &[String]) -> Result<(), Error> {
        let _nobody_unpacks = self.inner.unpacking.lock();
        let mut state = self.inner.state.lock();
        let mut images = HashSet::new();
        for text in manifest_digests {
            let digest = Digest::parse(text)?;
            if state.kept.contains(&digest) {
                images.insert(digest);
            }
        }
        // All of it is known before anything goes: what cannot be read must not look as if nobody needed it.
        let mut needed: HashSet<Digest> = state.held.values().flatten().cloned().collect();
        for image in &images {
            needed.extend(self.parts(image)?);
        }
        let let_go = doing("let images go");
        let swept = || -> io::Result<u64> {
            // An image ceases to be kept before its parts go, so that a crash in between leaves no half of it.
            let mut freed = 0;
            self.sweep(KEPT, &images, &mut 0)?;
            self.sweep(ROOTS, &images, &mut freed)?;
            self.sweep(BLOBS, &needed, &mut freed)?;
            Ok(freed)
        };
        state.kept.retain(|digest| images.contains(digest));
        let freed = swept().map_err(let_go)?;
        state.used = state.used.saturating_sub(freed);
        Ok(())
    }

    /// Removes the entries of a part of the store that are not to stay.
    fn sweep(&self, part: &str, stay: &HashSet<Digest>, freed: &mut u64) -> io::Result<()> {
        let dir = self.inner.dir.join(part);
        let mut swept = false;
        for name in tree::names(&dir)? {
            if Digest::from_hex(&name).is_some_and(|digest| stay.contains(&digest)) {
                continue;
            }
            let path = dir.join(&name);
            *freed += tree::size(&path)?;
            // A directory goes under another name, so that half of one is never found under its own.
            let going = self.inner.dir.join(TMP).join(format!("gone-{name}"));
            std::fs::rename(&path, &going)?;
            tree::remove(&going)?;
            swept = true;
        }
        if swept {
            File::open(&dir)?.sync_all()?;
        }
        Ok(())
    }

    /// An image's configuration.
    pub fn config(&self, manifest_digest: &str) -> Result<Config, Error> {
        let (_, manifest) = self.kept_manifest(manifest_digest)?;
        let bytes = self.document(&manifest.config.digest)?;
        Config::parse(&bytes).map_err(Error::Refused)
    }

    /// The root directory of an image, unpacked now unless it was before. It must not be written to.
    pub fn unpack(&self, manifest_digest: &str) -> Result<PathBuf, Error> {
        let (digest, manifest) = self.kept_manifest(manifest_digest)?;
        let root = self.inner.dir.join(ROOTS).join(digest.hex());
        let _alone = self.inner.unpacking.lock();
        if root.is_dir() {
            return Ok(root);
        }
        let (used, max) = self.usage();
        let room = max.saturating_sub(used);
        let budget = Budget::new(
            room.min(self.inner.limits.image_bytes_max),
            self.inner.limits.entries_max,
        );
        let temporary = self.temporary();
        let unpacked = self.unpack_into(&temporary, &manifest, &budget);
        let unpacked = unpacked.and_then(|()| {
            let size = tree::size(&temporary).map_err(doing("measure an unpacked image"))?;
            tree::publish(&temporary, &root).map_err(doing("put an unpacked image in place"))?;
            Ok(size)
        });
        match unpacked {
            Ok(size) => {
                self.inner.state.lock().used += size;
                Ok(root)
            }
            Err(error) => {
                if let Err(error) = tree::remove(&temporary) {
                    tracing::warn!(%error, "cannot remove a half unpacked image");
                }
                Err(match error {
                    Error::Refused(_)
                        if budget.is_spent() && room < self.inner.limits.image_bytes_max =>
                    {
                        Error::Full {
                            wanted: room + 1,
                            used,
                            max,
                        }
                    }
                    error => error,
                })
            }
        }
    }

    fn unpack_into(&self, root: &Path, manifest: &Manifest, budget: &Budget) -> Result<(), Error> {
        tree::make_root(root).map_err(doing("make a directory to unpack into"))?;
        for descriptor in &manifest.layers {
            let packing = manifest::packing(descriptor).map_err(Error::Refused)?;
            let blob = File::open(self.blob_path(&descriptor.digest));
            let blob = blob.map_err(doing(format!("open layer {}", descriptor.digest)))?;
            layer::apply(blob, packing, root, budget)
                .map_err(|error| error.of_layer(&descriptor.digest))?;
        }
        Ok(())
    }

    /// The manifest of a kept image for this machine.
    fn kept_manifest(&self, manifest_digest: &str) -> Result<(Digest, Manifest), Error> {
        let digest = Digest::parse(manifest_digest)?;
        if !self.inner.state.lock().kept.contains(&digest) {
            return Err(Error::NotKept(digest.to_string()));
        }
        let (_, manifest) = self.resolve(&digest)?;
        Ok((digest, manifest))
    }

    /// Follows an index to the manifest for this machine. Also gives the digests that were followed.
    fn resolve(&self, digest: &Digest) -> Result<(Vec<Digest>, Manifest), Error> {
        let mut followed = vec![digest.clone()];
        let entries = match self.manifest(digest)? {
            Document::Image(manifest) => return Ok((followed, manifest)),
            Document::Index(entries) => entries,
        };
        let entry = manifest::for_this_machine(&entries).ok_or_else(|| {
            let architecture = manifest::architecture();
            Error::Refused(format!("the image is not made for linux/{architecture}"))
        })?;
        followed.push(entry.digest.clone());
        match self.manifest(&entry.digest)? {
            Document::Image(manifest) => Ok((followed, manifest)),
            Document::Index(_) => Err(Error::Refused("an index inside of an index".to_owned())),
        }
    }

    fn manifest(&self, digest: &Digest) -> Result<Document, Error> {
        manifest::parse(&self.document(digest)?, None).map_err(Error::Refused)
    }

    /// Every blob that an image needs here.
    fn parts(&self, digest: &Digest) -> Result<Vec<Digest>, Error> {
        let (mut parts, manifest) = self.resolve(digest)?;
        parts.push(manifest.config.digest);
        parts.extend(manifest.layers.into_iter().map(|layer| layer.digest));
        Ok(parts)
    }

    /// A small blob as a whole.
    fn document(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        tree::read(&self.blob_path(digest), manifest::DOCUMENT_BYTES_MAX)
            .map_err(doing(format!("read {digest}")))
    }

    fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.inner.dir.join(BLOBS).join(digest.hex())
    }

    fn temporary(&self) -> PathBuf {
        let mut state = self.inner.state.lock();
        state.next += 1;
        self.inner.dir.join(TMP).join(state.next.to_string())
    }
}

#[cfg(test)]
pub(crate) mod tests;
