//! The configuration file: how it is read, and the words it has for some values. Its keys are in `keys.rs`.

use std::num::NonZeroU16;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use heddle_api::mask::Mask;
use heddle_front::settings::{DeletedPoll, MissingVersion};
use heddle_mesh::path::source::legacy::LegacySettings;
use heddle_rt::net::egress::Prefix;
use serde::{Deserialize, Deserializer};

use super::keys::File;
use crate::failure::Failure;

/// What heddle tells about itself to others.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TelemetryFile {
    pub(super) otlp_endpoint: Option<String>,
}

impl TelemetryFile {
    pub(super) fn to(endpoint: String) -> Self {
        Self {
            otlp_endpoint: Some(endpoint),
        }
    }
}

/// How the publish API of old Kyma is served. What is not there stays as it was.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CompatFile {
    pub(super) strict: Option<bool>,
    pub(super) repeat_minutes: Option<u16>,
    pub(super) body_kibibytes: Option<NonZeroU16>,
}

impl CompatFile {
    pub(super) fn strictly(strict: bool) -> Self {
        Self {
            strict: Some(strict),
            ..Self::default()
        }
    }

    pub(super) fn put(&self, legacy: &mut LegacySettings) {
        if let Some(strict) = self.strict {
            legacy.strict = strict;
        }
        if let Some(minutes) = self.repeat_minutes {
            legacy.repeat_window = Duration::from_secs(u64::from(minutes) * 60);
        }
        if let Some(kibibytes) = self.body_kibibytes {
            legacy.body_bytes_max = usize::from(kibibytes.get()) << 10;
        }
    }
}

/// How the file says what becomes of an OSB request without a version.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) enum OnMissingVersion {
    #[serde(rename = "400")]
    BadRequest,
    #[serde(rename = "412")]
    PreconditionFailed,
    #[serde(rename = "accept")]
    Accept,
}

impl OnMissingVersion {
    pub(super) fn word(answer: MissingVersion) -> &'static str {
        match answer {
            MissingVersion::BadRequest => "400",
            MissingVersion::PreconditionFailed => "412",
            MissingVersion::Accept => "accept",
        }
    }
}

impl From<OnMissingVersion> for MissingVersion {
    fn from(said: OnMissingVersion) -> Self {
        match said {
            OnMissingVersion::BadRequest => Self::BadRequest,
            OnMissingVersion::PreconditionFailed => Self::PreconditionFailed,
            OnMissingVersion::Accept => Self::Accept,
        }
    }
}

/// How the file says what is answered about something that is gone.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum OnDeletedPoll {
    Succeeded,
    Gone,
}

impl OnDeletedPoll {
    pub(super) fn word(answer: DeletedPoll) -> &'static str {
        match answer {
            DeletedPoll::Succeeded => "succeeded",
            DeletedPoll::Gone => "gone",
        }
    }
}

impl From<OnDeletedPoll> for DeletedPoll {
    fn from(said: OnDeletedPoll) -> Self {
        match said {
            OnDeletedPoll::Succeeded => Self::Succeeded,
            OnDeletedPoll::Gone => Self::Gone,
        }
    }
}

/// What is hidden in data, each place as a JSON pointer.
pub(super) fn mask<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Mask>, D::Error> {
    let texts = Option::<Vec<String>>::deserialize(from)?;
    let mask = texts.map(|texts| Mask::new(&texts));
    mask.transpose().map_err(serde::de::Error::custom)
}

/// Ranges of addresses, each as text.
pub(super) fn ranges<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<Prefix>>, D::Error> {
    let texts = Option::<Vec<String>>::deserialize(from)?;
    let parse = |text: String| text.parse().map_err(serde::de::Error::custom);
    texts
        .map(|texts| texts.into_iter().map(parse).collect())
        .transpose()
}

pub(super) fn parse_file(path: &Path, text: &str) -> anyhow::Result<File> {
    let options = serde_saphyr::options! { with_snippet: false };
    let parsed: Result<Option<File>, _> = serde_saphyr::from_str_with_options(text, options);
    let file = parsed.map_err(|error| Failure::Usage(error.to_string()));
    let file = file.with_context(|| format!("cannot use configuration {}", path.display()))?;
    let mut file = file.unwrap_or_default();
    // An endpoint without text is none, as OpenTelemetry has it.
    file.telemetry = file.telemetry.filter(|telemetry| {
        telemetry
            .otlp_endpoint
            .as_deref()
            .is_some_and(|text| !text.is_empty())
    });
    Ok(file)
}
