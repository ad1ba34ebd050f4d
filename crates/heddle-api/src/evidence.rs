//! Evidence: what a reading of a registry says about each image, and no more than it says.
//!
//! Only positive proof of absence may withdraw a bundle. Everything that is neither seen nor proven gone is *unknown*, and
//! what is unknown changes nothing. Whoever reads a registry classifies answers into these values; whoever acts on them sees
//! no status code any more.

use serde_json::{Map, Value};

use crate::bundle::MarkReason;
use crate::bundle_revision::VersionSource;

/// One image of a registry: a repository, and the tag that is followed in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageName {
    /// With its organisation.
    pub repository: String,
    pub track: String,
}

impl std::fmt::Display for ImageName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.repository, self.track)
    }
}

/// What is known of an image before a reading.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    pub image: ImageName,
    /// [`Found::digest`] of what was seen last, whether it was accepted or not. An image that still has it costs one
    /// question.
    pub digest: Option<String>,
}

/// What one reading of a registry came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reading {
    /// What was found out about each image, in no order, each at most once.
    pub sightings: Vec<ImageSighting>,
    /// What was wrong with the reading as a whole. What it says nothing about is then unknown.
    pub trouble: Option<Trouble>,
    /// How many requests it took.
    pub requests: u64,
}

/// What was found out about one image.
#[derive(Clone, Debug, PartialEq)]
pub struct ImageSighting {
    pub image: ImageName,
    pub verdict: ImageEvidence,
}

/// What an answer proves.
#[derive(Clone, Debug, PartialEq)]
pub enum ImageEvidence {
    /// It is there as it was known.
    Unchanged,
    /// It is there in a form that was not known before.
    Present(Box<Found>),
    /// It is there in a form that cannot be offered; what was good before stays good.
    Rejected { digest: String, why: String },
    /// It is proven not to be there, or not to be wanted.
    Absent { reason: MarkReason, why: String },
    /// Nobody can tell.
    Unknown { why: String },
}

/// A bundle's image, as it is now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// Digest of the manifest; with an index, of the index.
    pub manifest_digest: String,
    /// Digest of the image's configuration.
    pub config_digest: String,
    /// Digest of everything that makes this state of the bundle, where that is more than its image.
    pub state_digest: Option<String>,
    /// Where it can be fetched from, without a tag: `host/repository`.
    pub location: String,
    /// The bundle's description as its author wrote it, known to be sound.
    pub description: Map<String, Value>,
    /// The version that its author gave it, and where that was said.
    pub version: Option<(String, VersionSource)>,
    /// Version of the contract between bundle and runner.
    pub runtime: i32,
}

impl Found {
    /// What this state of the bundle is known by: another digest is another revision.
    pub fn digest(&self) -> &str {
        self.state_digest
            .as_deref()
            .unwrap_or(&self.manifest_digest)
    }
}

/// What was wrong with a reading as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It does not answer, or not as a registry does.
    Unreachable(String),
    /// It refuses the credentials, or wants some.
    AuthenticationFailed(String),
    /// Not every page of its listing could be read.
    ListingIncomplete(String),
    /// What it is told to read makes no sense.
    Misconfigured(String),
}

impl Trouble {
    /// What happened, for people.
    pub fn message(&self) -> &str {
        match self {
            Self::Unreachable(text)
            | Self::AuthenticationFailed(text)
            | Self::ListingIncomplete(text)
            | Self::Misconfigured(text) => text,
        }
    }
}

/// What opens a registry.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    #[default]
    None,
    Basic {
        username: String,
        password: String,
    },
    Token(String),
}

impl std::fmt::Debug for Credentials {
    /// Secrets stay out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Basic { .. } => "Basic(…)",
            Self::Token(_) => "Token(…)",
        })
    }
}
