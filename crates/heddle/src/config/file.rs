//! The configuration file: what it may say, and nothing else.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use heddle_api::broker::Classes;
use heddle_api::offer::Mode;
use heddle_front::settings::{DeletedPoll, MissingVersion};
use heddle_mesh::log::Reserve;
use heddle_rt::net::egress::Prefix;
use serde::{Deserialize, Deserializer};

use super::{Config, LogFormat, Origin};
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
    pub(super) broker_classes: Option<Vec<String>>,
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
    pub(super) osb_initial_catalog_wait_seconds: Option<u32>,
    pub(super) osb_awaiting_catalog_max: Option<usize>,
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

impl Config {
    /// What the file says, over the defaults.
    pub(super) fn take_file(&mut self, file: File) {
        self.set("dataDir", Origin::File, file.data_dir, |config, value| {
            config.data_dir = value
        });
        self.set("listen", Origin::File, file.listen, |config, value| {
            config.listen = value
        });
        self.set("events", Origin::File, file.events, |config, value| {
            config.events = value
        });
        self.set(
            "eventsRequireIdentity",
            Origin::File,
            file.events_require_identity,
            |config, value| config.events_require_identity = value,
        );
        self.set(
            "eventsClientCAFile",
            Origin::File,
            file.events_client_ca,
            |config, value| config.events_client_ca = Some(value),
        );
        self.set(
            "egressAllow",
            Origin::File,
            file.egress_allow,
            |config, value| config.egress.allow = value,
        );
        self.set(
            "egressDeny",
            Origin::File,
            file.egress_deny,
            |config, value| config.egress.deny = value,
        );
        self.set(
            "brokerClasses",
            Origin::File,
            file.broker_classes,
            |config, value| config.broker_classes = Classes::new(value),
        );
        self.set(
            "retentionHours",
            Origin::File,
            file.retention_hours,
            |config, value| {
                config.retention.age_max = Duration::from_secs(u64::from(value) * 3600);
            },
        );
        self.set(
            "retentionGibibytes",
            Origin::File,
            file.retention_gibibytes,
            |config, value| config.retention.bytes_max = u64::from(value) << 30,
        );
        self.set(
            "eventsReserveMebibytes",
            Origin::File,
            file.events_reserve_mebibytes,
            |config, value| config.reserve = Reserve::Bytes(u64::from(value) << 20),
        );
        self.set(
            "backlogMebibytes",
            Origin::File,
            file.backlog_mebibytes,
            |config, value| config.quota.bytes_max = Some(u64::from(value.get()) << 20),
        );
        self.set(
            "backlogHours",
            Origin::File,
            file.backlog_hours,
            |config, value| {
                let hours = u64::from(value.get());
                config.quota.age_max = Some(Duration::from_secs(hours * 3600));
            },
        );
        self.set(
            "allowRemote",
            Origin::File,
            file.allow_remote,
            |config, value| config.allow_remote = value,
        );
        self.set("tlsNames", Origin::File, file.tls_names, |config, value| {
            config.tls_names = value
        });
        self.set(
            "controllers",
            Origin::File,
            file.controllers,
            |config, value| config.controllers = value,
        );
        self.set(
            "logFilter",
            Origin::File,
            file.log_filter,
            |config, value| config.log_filter = value,
        );
        self.set(
            "logFormat",
            Origin::File,
            file.log_format,
            |config, value| config.log_format = value,
        );
        self.set(
            "shutdownGraceSeconds",
            Origin::File,
            file.shutdown_grace_seconds,
            |config, value| {
                config.shutdown_grace = Duration::from_secs(value.into());
            },
        );
        let telemetry = file.telemetry.unwrap_or_default();
        self.set_otlp_endpoint(Origin::File, telemetry.otlp_endpoint);
        self.set(
            "osbNamespace",
            Origin::File,
            file.osb_namespace,
            |config, value| config.osb.namespace = value,
        );
        self.set(
            "osbMissingVersion",
            Origin::File,
            file.osb_missing_version,
            |config, value| {
                config.osb.missing_version = match value {
                    OnMissingVersion::BadRequest => MissingVersion::BadRequest,
                    OnMissingVersion::PreconditionFailed => MissingVersion::PreconditionFailed,
                    OnMissingVersion::Accept => MissingVersion::Accept,
                }
            },
        );
        self.set(
            "osbDeletedPoll",
            Origin::File,
            file.osb_deleted_poll,
            |config, value| {
                config.osb.deleted_poll = match value {
                    OnDeletedPoll::Succeeded => DeletedPoll::Succeeded,
                    OnDeletedPoll::Gone => DeletedPoll::Gone,
                }
            },
        );
        self.set(
            "osbSyncWaitSeconds",
            Origin::File,
            file.osb_sync_wait_seconds,
            |config, value| config.osb.sync_wait = Duration::from_secs(value.into()),
        );
        self.set(
            "osbFastWaitSeconds",
            Origin::File,
            file.osb_fast_wait_seconds,
            |config, value| config.osb.fast_wait = Duration::from_secs(value.into()),
        );
        self.set(
            "osbInitialCatalogWaitSeconds",
            Origin::File,
            file.osb_initial_catalog_wait_seconds,
            |config, value| config.osb.initial_catalog_wait = Duration::from_secs(value.into()),
        );
        self.set(
            "osbAwaitingCatalogMax",
            Origin::File,
            file.osb_awaiting_catalog_max,
            |config, value| config.osb.awaiting_catalog_max = value,
        );
        self.set(
            "osbCatalogMapping",
            Origin::File,
            file.osb_catalog_mapping,
            |config, value| config.catalog.mode = value,
        );
        self.set(
            "osbProvisionOnlyOnce",
            Origin::File,
            file.osb_provision_only_once,
            |config, value| config.catalog.provision_only_once = value,
        );
    }
}
