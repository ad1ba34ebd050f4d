//! What developers push to heddle itself: a directory in the OCI image layout that heddle owns.
//!
//! An image is refused at once if it could not be offered, so that its author hears of it. What a push replaces stays for a
//! few pushes, unnamed, because somebody may be about to fetch it; what nothing leads to any more is removed. All calls
//! block. Whoever pushes must be allowed to; that is decided elsewhere.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heddle_api::evidence::{ImageEvidence, ImageName};
use heddle_rt::Vfs;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::address::{is_repository, is_tag};
use super::evidence::{Circumstances, ImageResponse, classify};
use super::layout::{REF_NAME, blob_path, image_name};
use super::source::seen;
use crate::images::manifest::{self, Descriptor, Document, LISTING_BYTES_MAX, LISTING_ENTRIES_MAX};
use crate::images::{Digest, Image};

/// The annotation of what was replaced: what it was called.
const REPLACED: &str = "dev.heddle.replaced";
/// How many replaced images of one name stay.
const REPLACED_MAX: usize = 5;

/// Why something was not pushed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It will be the same next time.
    #[error("{0}")]
    Invalid(String),
    #[error("cannot {what}")]
    Io { what: String, source: io::Error },
}

fn doing(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    let what = what.into();
    move |source| Error::Io { what, source }
}

/// What was pushed. Cheap to clone; clones are the same store.
#[derive(Clone, Debug)]
pub struct PushStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    /// Held while the index is changed.
    writing: Mutex<()>,
}

impl PushStore {
    /// Opens the directory, and makes it an empty layout if it is none.
    pub fn open(vfs: Arc<dyn Vfs>, dir: &Path) -> Result<Self, Error> {
        let opening = || -> io::Result<()> {
            vfs.create_dir_all(&dir.join("blobs").join("sha256"))?;
            let (index, layout) = (dir.join("index.json"), dir.join("oci-layout"));
            if !vfs.exists(&index)? {
                vfs.write_atomic(&index, index_of(&[]).as_bytes(), 0o644)?;
            }
            if !vfs.exists(&layout)? {
                vfs.write_atomic(&layout, br#"{"imageLayoutVersion":"1.0.0"}"#, 0o644)?;
            }
            Ok(())
        };
        opening().map_err(doing(format!("make {}", dir.display())))?;
        Ok(Self {
            inner: Arc::new(Inner {
                vfs,
                dir: dir.to_owned(),
                writing: Mutex::default(),
            }),
        })
    }

    pub(super) fn dir(&self) -> &Path {
        &self.inner.dir
    }

    /// Puts an image under a name, in place of what had it. Gives the digest of its manifest.
    pub fn put(&self, repository: &str, tag: &str, image: &Image) -> Result<String, Error> {
        let name = ImageName {
            repository: repository.to_owned(),
            track: tag.to_owned(),
        };
        check(&name, image).map_err(Error::Invalid)?;
        let digest = Digest::of(&image.manifest);
        let _alone = self.inner.writing.lock();
        let mut entries = self.entries()?;
        for blob in image.layers.iter().chain([&image.config, &image.manifest]) {
            let path = blob_path(&self.inner.dir, &Digest::of(blob));
            let vfs = &self.inner.vfs;
            let write = || {
                if vfs.exists(&path)? {
                    Ok(())
                } else {
                    vfs.write_atomic(&path, blob, 0o644)
                }
            };
            write().map_err(doing(format!("write a blob of {name}")))?;
        }
        retire(&mut entries, &name);
        entries.retain(|entry| entry.digest != digest || image_name(entry).is_some());
        entries.push(Descriptor {
            media_type: manifest::OCI_MANIFEST.to_owned(),
            digest: digest.clone(),
            size: image.manifest.len() as u64,
            platform: None,
            annotations: [(REF_NAME.to_owned(), name.to_string())].into(),
        });
        self.write(&entries)?;
        Ok(digest.to_string())
    }

    /// Takes a name away. Whether it was there.
    pub fn remove(&self, repository: &str, tag: &str) -> Result<bool, Error> {
        let name = ImageName {
            repository: repository.to_owned(),
            track: tag.to_owned(),
        };
        let _alone = self.inner.writing.lock();
        let mut entries = self.entries()?;
        let was_there = retire(&mut entries, &name);
        if was_there {
            self.write(&entries)?;
        }
        Ok(was_there)
    }

    fn entries(&self) -> Result<Vec<Descriptor>, Error> {
        let index = self.inner.vfs.read(&self.inner.dir.join("index.json"));
        let index = index.map_err(doing("read what was pushed"))?;
        manifest::parse_listing(&index).map_err(Error::Invalid)
    }

    /// Writes the index, and then removes what it does not lead to.
    fn write(&self, entries: &[Descriptor]) -> Result<(), Error> {
        let Inner { vfs, dir, .. } = &*self.inner;
        let index = index_of(entries);
        // What could not be read again would take everything that was pushed with it.
        if entries.len() > LISTING_ENTRIES_MAX || index.len() as u64 > LISTING_BYTES_MAX {
            let why = format!(
                "{} images were pushed, and no more can be kept; push to a registry of your own",
                entries.len() - 1
            );
            return Err(Error::Invalid(why));
        }
        let written = vfs.write_atomic(&dir.join("index.json"), index.as_bytes(), 0o644);
        written.map_err(doing("write what was pushed"))?;
        let sweeping = || -> io::Result<()> {
            let mut needed = HashSet::new();
            for entry in entries {
                needed.insert(entry.digest.clone());
                let bytes = vfs.read(&blob_path(dir, &entry.digest))?;
                if let Ok(Document::Image(image)) = manifest::parse(&bytes, Some(&entry.media_type))
                {
                    let parts = image.layers.into_iter().chain([image.config]);
                    needed.extend(parts.map(|part| part.digest));
                }
            }
            let blobs = dir.join("blobs").join("sha256");
            let needed: HashSet<&str> = needed.iter().map(Digest::hex).collect();
            for name in vfs
                .list(&blobs)?
                .iter()
                .filter(|name| !needed.contains(name.as_str()))
            {
                vfs.remove(&blobs.join(name))?;
            }
            Ok(())
        };
        // What was asked for is done; what is too much goes next time.
        if let Err(error) = sweeping() {
            tracing::warn!(%error, "cannot remove what was pushed and replaced");
        }
        Ok(())
    }
}

/// Takes a name from what has it. Whether something had it.
fn retire(entries: &mut Vec<Descriptor>, name: &ImageName) -> bool {
    let mut found = false;
    for entry in entries
        .iter_mut()
        .filter(|entry| image_name(entry).as_ref() == Some(name))
    {
        entry.annotations.remove(REF_NAME);
        entry
            .annotations
            .insert(REPLACED.to_owned(), name.to_string());
        found = true;
    }
    let was = name.to_string();
    let is_old = |entry: &Descriptor| entry.annotations.get(REPLACED) == Some(&was);
    let mut too_many = entries
        .iter()
        .filter(|entry| is_old(entry))
        .count()
        .saturating_sub(REPLACED_MAX);
    // The oldest stand first.
    entries.retain(|entry| {
        let goes = too_many > 0 && is_old(entry);
        too_many -= usize::from(goes);
        !goes
    });
    found
}

fn index_of(entries: &[Descriptor]) -> String {
    let entry = |entry: &Descriptor| -> Value {
        json!({"mediaType": entry.media_type, "digest": entry.digest.as_str(), "size": entry.size,
            "annotations": entry.annotations})
    };
    let manifests: Vec<Value> = entries.iter().map(entry).collect();
    json!({"schemaVersion": 2, "mediaType": manifest::OCI_INDEX, "manifests": manifests})
        .to_string()
}

/// Whether an image is whole and could be offered.
pub(super) fn check(name: &ImageName, image: &Image) -> Result<(), String> {
    if !is_repository(&name.repository) || !is_tag(&name.track) {
        return Err(format!("{name} cannot be the name of an image"));
    }
    let Document::Image(document) = manifest::parse(&image.manifest, None)? else {
        return Err("an index cannot be pushed, only the image for one machine".to_owned());
    };
    let fits = |descriptor: &Descriptor, blob: &[u8]| {
        descriptor.digest == Digest::of(blob) && descriptor.size == blob.len() as u64
    };
    let layers_fit = document.layers.len() == image.layers.len()
        && document
            .layers
            .iter()
            .zip(&image.layers)
            .all(|(descriptor, blob)| fits(descriptor, blob));
    if !fits(&document.config, &image.config) || !layers_fit {
        return Err(
            "the manifest does not describe the configuration and layers it came with".to_owned(),
        );
    }
    let answer = ImageResponse::Image(seen(
        &Digest::of(&image.manifest),
        &document,
        &image.config,
        None,
    )?);
    let circumstances = Circumstances {
        image: name,
        location: "",
        listing_complete: true,
        listed: None,
    };
    match classify(answer, circumstances) {
        ImageEvidence::Present(_) => Ok(()),
        ImageEvidence::Rejected { why, .. }
        | ImageEvidence::Absent { why, .. }
        | ImageEvidence::Unknown { why } => Err(why),
        ImageEvidence::Unchanged => Err("nothing was known of it".to_owned()),
    }
}

#[cfg(test)]
mod tests;
