//! Pushing an image to a registry: its blobs first, then the manifest that needs them, then nothing is missing.

use bytes::Bytes;
use heddle_api::evidence::ImageName;
use http::{Method, StatusCode};

use super::address::Address;
use super::ask::{Failure, RegistryRequest, RegistryResponse};
use super::client::Client;
use super::{evidence, push};
use crate::images::manifest::OCI_MANIFEST;
use crate::images::{Digest, Image};

/// Why an image was not pushed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// Something about the image or where it should go.
    #[error("{0}")]
    Invalid(String),
    /// The registry said no.
    #[error("the registry refuses: {0}")]
    Refused(String),
    /// Trying again may help.
    #[error("the registry does not answer: {0}")]
    Unavailable(String),
}

impl From<Failure> for PushError {
    fn from(failure: Failure) -> Self {
        Self::Unavailable(failure.to_string())
    }
}

/// Pushes. Gives the digest of the manifest.
pub(super) async fn upload(
    client: &Client,
    base: &Address,
    name: &ImageName,
    image: &Image,
) -> Result<String, PushError> {
    push::check(name, image).map_err(PushError::Invalid)?;
    let repository = &name.repository;
    let upload = Upload {
        client,
        base,
        repository,
        scope: format!("repository:{repository}:pull,push"),
    };
    for blob in image.layers.iter().chain([&image.config]) {
        upload.blob(blob).await?;
    }
    let digest = Digest::of(&image.manifest);
    let address = base.below(&format!("/v2/{repository}/manifests/{}", name.track));
    let mut ask = RegistryRequest::new(Method::PUT, address, &upload.scope);
    ask.content_type = Some(OCI_MANIFEST.to_owned());
    ask.body = image.manifest.clone();
    expect(&client.ask(&ask).await?, StatusCode::CREATED)?;
    Ok(digest.to_string())
}

struct Upload<'a> {
    client: &'a Client,
    base: &'a Address,
    repository: &'a str,
    scope: String,
}

impl Upload<'_> {
    async fn blob(&self, blob: &Bytes) -> Result<(), PushError> {
        let digest = Digest::of(blob);
        let repository = self.repository;
        let there = self.base.below(&format!("/v2/{repository}/blobs/{digest}"));
        let head = self
            .client
            .ask(&RegistryRequest::new(Method::HEAD, there, &self.scope))
            .await?;
        if head.status == StatusCode::OK {
            return Ok(());
        }
        let start = self.base.below(&format!("/v2/{repository}/blobs/uploads/"));
        let started = self
            .client
            .ask(&RegistryRequest::new(
                Method::POST,
                start.clone(),
                &self.scope,
            ))
            .await?;
        expect(&started, StatusCode::ACCEPTED)?;
        let location = started.header("location").unwrap_or_default();
        let place = start.follow(location).map_err(PushError::Refused)?;
        let mut ask = RegistryRequest::new(
            Method::PUT,
            place.with("digest", digest.as_str()),
            &self.scope,
        );
        ask.content_type = Some("application/octet-stream".to_owned());
        ask.body = blob.clone();
        expect(&self.client.ask(&ask).await?, StatusCode::CREATED)
    }
}

fn expect(answer: &RegistryResponse, status: StatusCode) -> Result<(), PushError> {
    if answer.status == status {
        return Ok(());
    }
    let said = evidence::errors(&answer.body);
    let said = said
        .first()
        .map(|error| format!(" {}: {}", error.code, error.message));
    let text = format!("{}{}", answer.status.as_u16(), said.unwrap_or_default());
    Err(match answer.status.as_u16() {
        408 | 429 | 500.. => PushError::Unavailable(text),
        _ => PushError::Refused(text),
    })
}
