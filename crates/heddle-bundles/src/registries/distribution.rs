//! Registries that speak the OCI distribution protocol, as nearly all do.
//!
//! An image that is known costs one question for its digest. Otherwise its manifest leads to its configuration, where the
//! labels are; each is verified against the digest that named it.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use heddle_api::bundle_source::FetchError;
use heddle_api::evidence::ImageName;
use http::Method;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::address::{Address, is_repository, is_tag};
use super::ask::{Failure, RegistryRequest};
use super::client::Client;
use super::evidence::{self, ImageResponse};
use super::label::DESCRIPTIONS;
use super::listing::{self, Kind};
use super::source::{Listing, Source, Step, seen, step};
use crate::images::Digest;
use crate::images::manifest::{self, DOCUMENT_BYTES_MAX};

/// The digest of what a tag stands for.
const CONTENT_DIGEST: &str = "docker-content-digest";
/// Digests of images that are no bundles. They need not be looked into again, and there may be many.
const STRANGERS_MAX: usize = 100_000;

/// Manifests that are known to describe no bundle, by digest. Content never changes, so this never grows old.
#[derive(Clone, Debug, Default)]
pub(super) struct Strangers(Arc<Mutex<HashSet<Digest>>>);

impl Strangers {
    fn add(&self, digest: &str) {
        let mut known = self.0.lock();
        if known.len() >= STRANGERS_MAX {
            known.clear();
        }
        known.extend(Digest::parse(digest).ok());
    }

    fn has(&self, digest: &str) -> bool {
        let digest = Digest::parse(digest);
        digest.is_ok_and(|digest| self.0.lock().contains(&digest))
    }

    fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

/// One registry, for one reading.
#[derive(Debug)]
pub(super) struct Distribution {
    pub(super) client: Client,
    pub(super) base: Address,
    pub(super) kind: Kind,
    pub(super) lister: listing::Lister,
    pub(super) strangers: Strangers,
}

/// What a token has to allow for reading.
pub(super) fn pull(repository: &str) -> String {
    format!("repository:{repository}:pull")
}

impl Source for Distribution {
    async fn list(&self) -> Listing {
        self.lister.list(&self.client, &self.base).await
    }

    async fn tags(&self, repository: &str) -> Result<Vec<String>, String> {
        let scope = pull(repository);
        let read = listing::tags(&self.client, &self.base, repository, &scope).await;
        read.map_err(|stopped| stopped.why())
    }

    async fn look(&self, image: &ImageName, known: Option<&str>) -> ImageResponse {
        if !is_repository(&image.repository) || !is_tag(&image.track) {
            return ImageResponse::Failed(format!("{image} cannot be the name of an image"));
        }
        // The digest alone tells whether it is known, or known to be no bundle. Without anything known it tells nothing.
        if known.is_some() || !self.strangers.is_empty() {
            match self.head(image, known).await {
                Ok(Some(answer)) => return answer,
                Ok(None) => {}
                Err(failure) => return ImageResponse::Failed(failure.to_string()),
            }
        }
        let read = self.read(image).await;
        let answer = read.unwrap_or_else(|failure| ImageResponse::Failed(failure.to_string()));
        if let ImageResponse::Image(seen) = &answer
            && !DESCRIPTIONS
                .iter()
                .any(|label| seen.labels.contains_key(*label))
        {
            self.strangers.add(&seen.manifest_digest);
        }
        answer
    }

    async fn manifest(&self, repository: &str, digest: &Digest) -> Result<Bytes, FetchError> {
        let got = self.get_manifest(repository, digest.as_str()).await;
        match got.map_err(|failure| FetchError::Unavailable(failure.to_string()))? {
            Ok((found, bytes, _)) if found == *digest => Ok(bytes),
            Ok((found, ..)) => Err(FetchError::Mismatch(format!(
                "a manifest with digest {found} for {digest}"
            ))),
            Err(ImageResponse::Failed(why)) => Err(FetchError::Mismatch(why)),
            Err(answer) => Err(unavailable(&answer)),
        }
    }

    async fn blob(
        &self,
        repository: &str,
        digest: &Digest,
        into: mpsc::Sender<Bytes>,
    ) -> Result<(), FetchError> {
        let ask = RegistryRequest::get(self.blob_address(repository, digest), &pull(repository));
        let status = self.client.stream(&ask, into).await;
        match status
            .map_err(|failure| FetchError::Unavailable(failure.to_string()))?
            .as_u16()
        {
            200 => Ok(()),
            status => Err(FetchError::Unavailable(format!(
                "the registry answered {status} for {digest}"
            ))),
        }
    }

    fn location(&self, repository: &str) -> String {
        let host = match self.kind {
            Kind::DockerHub if self.base.origin.host.ends_with("docker.io") => {
                "docker.io".to_owned()
            }
            _ => self.base.origin.authority(),
        };
        format!("{host}{}/{repository}", self.base.path)
    }

    fn requests(&self) -> u64 {
        self.client.requests() + self.lister.requests()
    }

    fn has_given_up(&self) -> bool {
        self.client.has_given_up()
    }
}

fn unavailable(answer: &ImageResponse) -> FetchError {
    FetchError::Unavailable(match answer {
        ImageResponse::Refusal { status, errors } => match errors.first() {
            Some(error) => format!(
                "the registry answered {status} {}: {}",
                error.code, error.message
            ),
            None => format!("the registry answered {status}"),
        },
        other => format!("{other:?}"),
    })
}

impl Distribution {
    /// Asks for nothing but the digest. `None` if that does not settle it.
    async fn head(
        &self,
        image: &ImageName,
        known: Option<&str>,
    ) -> Result<Option<ImageResponse>, Failure> {
        let mut ask = self.ask_manifest(&image.repository, &image.track);
        ask.method = Method::HEAD;
        let answer = self.client.ask(&ask).await?;
        let digest = answer.header(CONTENT_DIGEST);
        Ok(match (answer.status.as_u16(), digest) {
            (200, Some(digest)) if self.strangers.has(digest) => {
                Some(ImageResponse::Image(evidence::Seen {
                    manifest_digest: digest.to_owned(),
                    ..evidence::Seen::default()
                }))
            }
            (200, Some(digest)) if Some(digest) == known => Some(ImageResponse::Same),
            (200, _) => None,
            // An answer without a body cannot say what it means, and some servers know no such question.
            (400 | 404 | 405 | 406 | 501, _) => None,
            (status, _) => Some(ImageResponse::Refusal {
                status,
                errors: Vec::new(),
            }),
        })
    }

    /// Reads a manifest and what it leads to.
    pub(super) async fn read(&self, image: &ImageName) -> Result<ImageResponse, Failure> {
        let repository = &image.repository;
        let (top, bytes, content_type) = match self.get_manifest(repository, &image.track).await? {
            Ok(got) => got,
            Err(answer) => return Ok(answer),
        };
        let (mut unfit, mut document) = (None, parse(&bytes, content_type.as_deref())?);
        // An index leads to an image, and no further.
        for _ in 0..2 {
            match step(document, &top).map_err(Failure::Garbled)? {
                Step::Done(seen) => return Ok(ImageResponse::Image(seen)),
                Step::Config(manifest) => {
                    let descriptor = &manifest.config;
                    if descriptor.size > DOCUMENT_BYTES_MAX {
                        let why = "the image's configuration is too large".to_owned();
                        return Err(Failure::Garbled(why));
                    }
                    let config = match self.small_blob(repository, &descriptor.digest).await? {
                        Ok(config) => config,
                        Err(answer) => return Ok(answer),
                    };
                    let seen = seen(&top, &manifest, &config, unfit).map_err(Failure::Garbled)?;
                    return Ok(ImageResponse::Image(seen));
                }
                Step::Manifest(descriptor, why) => {
                    unfit = why;
                    let digest = descriptor.digest.as_str();
                    let (found, bytes, content_type) =
                        match self.get_manifest(repository, digest).await? {
                            Ok(got) => got,
                            Err(answer) => return Ok(half_there(answer)),
                        };
                    if found != descriptor.digest {
                        return Err(mismatch(&descriptor.digest, &found));
                    }
                    document = parse(&bytes, content_type.as_deref())?;
                }
            }
        }
        Err(Failure::Garbled("an index inside of an index".to_owned()))
    }

    fn ask_manifest(&self, repository: &str, reference: &str) -> RegistryRequest {
        let address = self
            .base
            .below(&format!("/v2/{repository}/manifests/{reference}"));
        let mut ask = RegistryRequest::get(address, &pull(repository));
        ask.accept = Some(manifest::ACCEPT);
        ask.bytes_max = DOCUMENT_BYTES_MAX;
        ask
    }

    fn blob_address(&self, repository: &str, digest: &Digest) -> Address {
        self.base.below(&format!("/v2/{repository}/blobs/{digest}"))
    }

    /// A manifest with its digest and what the registry calls it; or why there is none.
    async fn get_manifest(
        &self,
        repository: &str,
        reference: &str,
    ) -> Result<Result<(Digest, Bytes, Option<String>), ImageResponse>, Failure> {
        let answer = self
            .client
            .ask(&self.ask_manifest(repository, reference))
            .await?;
        let status = answer.status.as_u16();
        if status != 200 {
            let errors = evidence::errors(&answer.body);
            return Ok(Err(ImageResponse::Refusal { status, errors }));
        }
        let found = Digest::of(&answer.body);
        if let Some(named) = answer.header(CONTENT_DIGEST)
            && named != found.as_str()
        {
            let why =
                format!("the registry sent content with digest {found} and called it {named}");
            return Ok(Err(ImageResponse::Failed(why)));
        }
        let content_type = answer.header("content-type").map(str::to_owned);
        Ok(Ok((found, answer.body, content_type)))
    }

    /// A small blob, verified; or why there is none.
    async fn small_blob(
        &self,
        repository: &str,
        digest: &Digest,
    ) -> Result<Result<Bytes, ImageResponse>, Failure> {
        let mut ask =
            RegistryRequest::get(self.blob_address(repository, digest), &pull(repository));
        ask.bytes_max = DOCUMENT_BYTES_MAX;
        let answer = self.client.ask(&ask).await?;
        let status = answer.status.as_u16();
        if status != 200 {
            let errors = evidence::errors(&answer.body);
            return Ok(Err(half_there(ImageResponse::Refusal { status, errors })));
        }
        let found = Digest::of(&answer.body);
        if found != *digest {
            return Err(mismatch(digest, &found));
        }
        Ok(Ok(answer.body))
    }
}

/// A part of an image is missing whose manifest is there: that proves nothing about the image.
fn half_there(answer: ImageResponse) -> ImageResponse {
    match answer {
        ImageResponse::Refusal { status, .. } => ImageResponse::Failed(format!(
            "the registry has the image and answered {status} for a part of it"
        )),
        other => other,
    }
}

fn mismatch(wanted: &Digest, found: &Digest) -> Failure {
    Failure::Garbled(format!(
        "the registry sent content with digest {found} for {wanted}"
    ))
}

fn parse(bytes: &[u8], content_type: Option<&str>) -> Result<manifest::Document, Failure> {
    manifest::parse(bytes, content_type).map_err(Failure::Garbled)
}
