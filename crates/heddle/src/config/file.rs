//! The configuration file: what it may say, and nothing else.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use heddle_api::offer::Mode;
use heddle_rt::net::egress::Prefix;
use serde::{Deserialize, Deserializer};

use super::LogFormat;
use crate::failure::Failure;

/// The file, key by key. All keys are optional.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct File {
    pub(super) data_dir: Option<PathBuf>,
    pub(super) listen: Option<SocketAddr>,
    pub(super) events: Option<SocketAddr>,
    pub(super) events_require_identity: Option<bool>,
    #[serde(rename = "eventsClientCAFile")]
    pub(super) events_client_ca: Option<PathBuf>,
    #[serde(default, deserialize_with = "ranges")]
    pub(super) egress_allow: Option<Vec<Prefix>>,
    #[serde(default, deserialize_with = "ranges")]
    pub(super) egress_deny: Option<Vec<Prefix>>,
    pub(super) retention_hours: Option<u32>,
    pub(super) retention_gibibytes: Option<u32>,
    pub(super) events_reserve_mebibytes: Option<u32>,
    pub(super) backlog_mebibytes: Option<NonZeroU32>,
    pub(super) backlog_hours: Option<NonZeroU32>,
    pub(super) allow_remote: Option<bool>,
    pub(super) tls_names: Option<Vec<String>>,
    pub(super) controllers: Option<bool>,
    pub(super) log_filter: Option<String>,
    pub(super) log_format: Option<LogFormat>,
    pub(super) shutdown_grace_seconds: Option<u32>,
    pub(super) telemetry: Option<TelemetryFile>,
    pub(super) osb_namespace: Option<String>,
    pub(super) osb_missing_version: Option<OnMissingVersion>,
    pub(super) osb_deleted_poll: Option<OnDeletedPoll>,
    pub(super) osb_sync_wait_seconds: Option<u32>,
    pub(super) osb_fast_wait_seconds: Option<u32>,
    pub(super) osb_catalog_mapping: Option<Mode>,
    pub(super) osb_provision_only_once: Option<bool>,
}

/// What heddle tells about itself to others.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TelemetryFile {
    pub(super) otlp_endpoint: Option<String>,
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

/// How the file says what is answered about something that is gone.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum OnDeletedPoll {
    Succeeded,
    Gone,
}

/// Ranges of addresses, each as text.
fn ranges<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<Prefix>>, D::Error> {
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
    Ok(file
        .with_context(|| format!("cannot use configuration {}", path.display()))?
        .unwrap_or_default())
}
