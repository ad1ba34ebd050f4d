//! A directory in the OCI image layout: a registry without a server.
//!
//! Its index says what there is; an image is found by the annotation that names it, `repository:tag`. The index is one file,
//! so it is complete or not there at all, and what it does not name is proven to be absent.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use heddle_api::bundle_source::FetchError;
use heddle_api::evidence::{ImageName, Trouble};
use heddle_rt::Tasks;
use tokio::sync::mpsc;

use super::address::{is_repository, is_tag};
use super::evidence::ImageResponse;
use super::source::{Listing, Source, Step, seen, step};
use crate::images::manifest::{self, DOCUMENT_BYTES_MAX, Descriptor, LISTING_BYTES_MAX};
use crate::images::{Digest, tree};

/// The annotation that names an image.
pub(super) const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// Pieces in which a blob is handed on.
const PIECE_BYTES: usize = 256 * 1024;

/// A directory, as it was when it was opened.
#[derive(Debug)]
pub(super) struct Layout {
    dir: PathBuf,
    tasks: Tasks,
    /// How the directory is called to people.
    name: String,
    images: BTreeMap<ImageName, Descriptor>,
}

impl Layout {
    pub(super) async fn open(tasks: &Tasks, dir: PathBuf, name: String) -> Result<Self, Trouble> {
        let loading = dir.clone();
        let loaded = tasks
            .blocking("read an OCI layout", move || load(&loading))
            .await;
        let images = loaded
            .map_err(|error| error.to_string())
            .and_then(|loaded| loaded);
        let images =
            images.map_err(|why| Trouble::Unreachable(format!("{}: {why}", dir.display())))?;
        Ok(Self {
            dir,
            tasks: tasks.clone(),
            name,
            images,
        })
    }

    /// Each repository is asked for, so none of them may cost a look at all.
    fn tags_of<'a>(&'a self, repository: &'a str) -> impl Iterator<Item = &'a str> {
        let first = ImageName {
            repository: repository.to_owned(),
            track: String::new(),
        };
        let from = self.images.range(first..).map(|(image, _)| image);
        from.take_while(move |image| image.repository == repository)
            .map(|image| image.track.as_str())
    }

    async fn document(&self, digest: &Digest) -> io::Result<Bytes> {
        let path = blob_path(&self.dir, digest);
        let read = self
            .tasks
            .blocking("read a blob", move || tree::read(&path, DOCUMENT_BYTES_MAX))
            .await??;
        if Digest::of(&read) != *digest {
            let text = format!("the content of {digest} is something else");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(read.into())
    }

    async fn read(&self, top: &Descriptor) -> Result<ImageResponse, String> {
        let document = |descriptor: Descriptor| async move {
            let read = self.document(&descriptor.digest).await;
            let bytes =
                read.map_err(|error| format!("cannot read {}: {error}", descriptor.digest))?;
            manifest::parse(&bytes, Some(&descriptor.media_type))
        };
        let (mut unfit, mut found) = (None, document(top.clone()).await?);
        for _ in 0..2 {
            match step(found, &top.digest)? {
                Step::Done(seen) => return Ok(ImageResponse::Image(seen)),
                Step::Config(image) => {
                    let config = self.document(&image.config.digest).await;
                    let config = config
                        .map_err(|error| format!("cannot read the configuration: {error}"))?;
                    return Ok(ImageResponse::Image(seen(
                        &top.digest,
                        &image,
                        &config,
                        unfit,
                    )?));
                }
                Step::Manifest(descriptor, why) => {
                    unfit = why;
                    found = document(descriptor).await?;
                }
            }
        }
        Err("an index inside of an index".to_owned())
    }
}

/// Where a layout has a blob.
pub(super) fn blob_path(dir: &Path, digest: &Digest) -> PathBuf {
    dir.join("blobs").join("sha256").join(digest.hex())
}

fn load(dir: &Path) -> Result<BTreeMap<ImageName, Descriptor>, String> {
    let read = |name: &str, bytes_max| {
        tree::read(&dir.join(name), bytes_max)
            .map_err(|error| format!("cannot read {name}: {error}"))
    };
    read("oci-layout", DOCUMENT_BYTES_MAX)?;
    let entries = manifest::parse_listing(&read("index.json", LISTING_BYTES_MAX)?)?;
    Ok(entries
        .into_iter()
        .filter_map(|entry| Some((image_name(&entry)?, entry)))
        .collect())
}

/// The image that an entry of an index is named as.
pub(super) fn image_name(entry: &Descriptor) -> Option<ImageName> {
    let (repository, track) = entry.annotations.get(REF_NAME)?.rsplit_once(':')?;
    (is_repository(repository) && is_tag(track)).then(|| ImageName {
        repository: repository.to_owned(),
        track: track.to_owned(),
    })
}

impl Source for Layout {
    async fn list(&self) -> Listing {
        Listing {
            repositories: self
                .images
                .keys()
                .map(|image| image.repository.clone())
                .collect(),
            exists: true,
            ..Listing::default()
        }
    }

    async fn tags(&self, repository: &str) -> Result<Vec<String>, String> {
        let tags = self.tags_of(repository);
        Ok(tags.map(str::to_owned).collect())
    }

    async fn look(&self, image: &ImageName, known: Option<&str>) -> ImageResponse {
        let Some(descriptor) = self.images.get(image) else {
            let repository_is_there = self.tags_of(&image.repository).next().is_some();
            let message = format!("the index does not name {image}");
            return ImageResponse::not_listed(repository_is_there, message);
        };
        if Some(descriptor.digest.as_str()) == known {
            return ImageResponse::Same;
        }
        self.read(descriptor)
            .await
            .unwrap_or_else(ImageResponse::Failed)
    }

    async fn manifest(&self, _repository: &str, digest: &Digest) -> Result<Bytes, FetchError> {
        self.document(digest)
            .await
            .map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData => FetchError::Mismatch(error.to_string()),
                _ => FetchError::Unavailable(format!("cannot read {digest}: {error}")),
            })
    }

    async fn blob(
        &self,
        _repository: &str,
        digest: &Digest,
        into: mpsc::Sender<Bytes>,
    ) -> Result<(), FetchError> {
        let path = blob_path(&self.dir, digest);
        let copying = move || {
            tree::pieces(&path, PIECE_BYTES, |piece| {
                into.blocking_send(piece).is_ok()
            })
        };
        let copied = self
            .tasks
            .blocking("copy a blob", copying)
            .await
            .and_then(|copied| copied);
        copied.map_err(|error| FetchError::Unavailable(format!("cannot read {digest}: {error}")))
    }

    fn location(&self, repository: &str) -> String {
        format!("{}/{repository}", self.name)
    }

    fn requests(&self) -> u64 {
        0
    }

    fn has_given_up(&self) -> bool {
        false
    }
}
