//! What every kind of registry can do: list, look, hand out.

use std::collections::BTreeSet;

use bytes::Bytes;
use heddle_api::bundle_source::FetchError;
use heddle_api::evidence::{ImageName, Trouble};
use tokio::sync::mpsc;

use super::evidence::{ImageResponse, Seen};
use crate::images::manifest::{self, Descriptor, Document, Manifest};
use crate::images::{Config, Digest};

/// A place where images come from.
pub(super) trait Source: Sync {
    /// The names of all repositories, as far as they can be had.
    fn list(&self) -> impl Future<Output = Listing> + Send;

    /// All tags of a repository that is there, or why nobody can tell.
    fn tags(&self, repository: &str) -> impl Future<Output = Result<Vec<String>, String>> + Send;

    /// What there is to say about one image. `known` is the digest that was seen last.
    fn look(
        &self,
        image: &ImageName,
        known: Option<&str>,
    ) -> impl Future<Output = ImageResponse> + Send;

    /// A manifest by its digest, verified.
    fn manifest(
        &self,
        repository: &str,
        digest: &Digest,
    ) -> impl Future<Output = Result<Bytes, FetchError>> + Send;

    /// Content by its digest, piece by piece; whoever takes it verifies it. Ends early when nobody takes it any more.
    fn blob(
        &self,
        repository: &str,
        digest: &Digest,
        into: mpsc::Sender<Bytes>,
    ) -> impl Future<Output = Result<(), FetchError>> + Send;

    /// Where an image can be fetched from, without a tag.
    fn location(&self, repository: &str) -> String;

    /// How many requests it took so far.
    fn requests(&self) -> u64;

    /// Whether it does not answer any more, so that asking on only takes time.
    fn has_given_up(&self) -> bool;
}

/// What a registry says it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Listing {
    pub(super) repositories: BTreeSet<String>,
    /// `None` when it is complete.
    pub(super) trouble: Option<Trouble>,
    /// Whether there is a listing at all. Some registries have none; what is asked for by name can still be read.
    pub(super) exists: bool,
    /// Whether nothing was heard, so that asking for images is of no use.
    pub(super) silent: bool,
}

/// What a manifest leads to.
#[derive(Debug)]
pub(super) enum Step {
    /// The image has no configuration that could describe a bundle.
    Done(Seen),
    /// The manifest to read next, and why it cannot run here if that is so.
    Manifest(Descriptor, Option<String>),
    /// The configuration to read.
    Config(Manifest),
}

/// Goes from a manifest to where its labels are.
pub(super) fn step(document: Document, manifest_digest: &Digest) -> Result<Step, String> {
    match document {
        Document::Image(image) if image.config.is_image_config() => Ok(Step::Config(image)),
        Document::Image(image) => Ok(Step::Done(Seen {
            manifest_digest: manifest_digest.to_string(),
            config_digest: image.config.digest.to_string(),
            ..Seen::default()
        })),
        Document::Index(entries) => {
            if let Some(entry) = manifest::for_this_machine(&entries) {
                return Ok(Step::Manifest(entry.clone(), None));
            }
            let why = format!(
                "the image is not made for linux/{}",
                manifest::architecture()
            );
            match manifest::for_any_machine(&entries) {
                Some(entry) => Ok(Step::Manifest(entry.clone(), Some(why))),
                None => Ok(Step::Done(Seen {
                    manifest_digest: manifest_digest.to_string(),
                    ..Seen::default()
                })),
            }
        }
    }
}

/// What an image says about itself.
pub(super) fn seen(
    manifest_digest: &Digest,
    image: &Manifest,
    config: &[u8],
    unfit: Option<String>,
) -> Result<Seen, String> {
    let unpackable = || {
        image
            .layers
            .iter()
            .find_map(|layer| manifest::packing(layer).err())
    };
    Ok(Seen {
        manifest_digest: manifest_digest.to_string(),
        config_digest: image.config.digest.to_string(),
        state_digest: None,
        labels: Config::parse(config)?.labels,
        unfit: unfit.or_else(unpackable),
    })
}
