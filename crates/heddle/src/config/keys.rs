//! Every key of the configuration, once.
//!
//! A row says how a key is called in the file and what it may hold there, which argument of `heddle serve` sets it too or else
//! what it is for, how a value is put into [`Config`], and how it is shown. From these rows come the [`File`], the steps that
//! take a file and a command line in, `heddle config show` and the page `docs/configuration.md`. What a flag and its variable
//! are called and what they are for is said in `ConfigArgs`, in clap's own terms.
//!
//! Invariant: rows stand in the order in which keys are shown.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use heddle_api::broker::Classes;
use heddle_api::mask::Mask;
use heddle_api::offer::Mode;
use heddle_mesh::log::Reserve;
use heddle_rt::net::egress::Prefix;
use serde::Deserialize;
use serde_json::json;

use super::file::{CompatFile, OnDeletedPoll, OnMissingVersion, TelemetryFile};
use super::{Config, ConfigArgs, LogFormat, Origin};

/// One row of the table.
#[derive(Debug)]
pub(super) struct ConfigKey {
    /// What it is called in the file.
    pub(super) name: &'static str,
    /// The argument of the command line that sets it, as clap knows it.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for the page, which a test renders")
    )]
    pub(super) argument: Option<&'static str>,
    /// What it is for, unless its argument says so.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "for the page, which a test renders")
    )]
    pub(super) about: Option<&'static str>,
    /// The value in effect, as YAML.
    pub(super) show: fn(&Config) -> String,
}

macro_rules! optional {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

macro_rules! config_keys {
    ($(
        $name:literal, $field:ident: $type:ty
            $(, flag $argument:ident $(via $convert:path)?)?
            $(, about $about:literal)?;
            $(with $read:literal;)?
            put $put:expr;
            show $show:expr;
    )*) => {
        /// The file, key by key. All keys are optional.
        #[derive(Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct File {
            $(
                #[serde(rename = $name $(, default, deserialize_with = $read)?)]
                pub(super) $field: Option<$type>,
            )*
        }

        pub(super) const KEYS: &[ConfigKey] = &[$(
            ConfigKey {
                name: $name,
                argument: optional!($(stringify!($argument))?),
                about: optional!($($about)?),
                show: $show,
            },
        )*];

        impl Config {
            /// What the file says, over the defaults.
            pub(super) fn take_file(&mut self, file: File) {
                $(self.set($name, Origin::File, file.$field, $put);)*
            }

            /// What the environment and the command line say, over the file.
            pub(super) fn put_args(&mut self, args: ConfigArgs, origin: impl Fn(&str) -> Origin) {
                $($(
                    let value = args.$argument$(.map($convert))?;
                    self.set($name, origin(stringify!($argument)), value, $put);
                )?)*
            }
        }
    };
}

config_keys! {
    "dataDir", data_dir: PathBuf, flag data_dir;
        put |config, path| config.data_dir = path;
        show |config| quote(&config.data_dir.display().to_string());

    "listen", listen: SocketAddr, flag listen;
        put |config, address| config.listen = address;
        show |config| quote(&config.listen.to_string());

    "events", events: SocketAddr, flag events;
        put |config, address| config.events = address;
        show |config| quote(&config.events.to_string());

    "eventsRequireIdentity", events_require_identity: bool, flag events_require_identity;
        put |config, required| config.events_require_identity = required;
        show |config| config.events_require_identity.to_string();

    "eventsClientCAFile", events_client_ca: PathBuf, flag events_client_ca;
        put |config, path| config.events_client_ca = Some(path);
        show |config| json!(config.events_client_ca.as_ref().map(|path| path.display().to_string())).to_string();

    "compat", compat: CompatFile, flag compat_strict via CompatFile::strictly;
        put |config, compat| compat.put(&mut config.legacy);
        show |config| json!({
            "bodyKibibytes": config.legacy.body_bytes_max >> 10,
            "repeatMinutes": config.legacy.repeat_window.as_secs() / 60,
            "strict": config.legacy.strict,
        }).to_string();

    "egressAllow", egress_allow: Vec<Prefix>,
        about "Ranges of addresses that events may be delivered to although `egressDeny` has them ([publishers](operating/publishers.md))";
        with "super::file::ranges";
        put |config, ranges| config.egress.allow = ranges;
        show |config| texts(&config.egress.allow);

    "egressDeny", egress_deny: Vec<Prefix>,
        about "Ranges of addresses that events must not be delivered to";
        with "super::file::ranges";
        put |config, ranges| config.egress.deny = ranges;
        show |config| texts(&config.egress.deny);

    "brokerClasses", broker_classes: Vec<String>,
        about "Values of the annotation `eventing.knative.dev/broker.class` whose Brokers are served";
        put |config, names| config.broker_classes = Classes::new(names);
        show |config| json!(config.broker_classes.names()).to_string();

    "retentionHours", retention_hours: u32,
        about "How long finished events are kept; unfinished ones stay";
        put |config, count| config.retention.age_max = hours(count);
        show |config| in_hours(config.retention.age_max).to_string();

    "retentionGibibytes", retention_gibibytes: u32,
        about "How much of the log finished events may keep";
        put |config, count| config.retention.bytes_max = u64::from(count) << 30;
        show |config| (config.retention.bytes_max >> 30).to_string();

    "eventsReserveMebibytes", events_reserve_mebibytes: u32,
        about "Free room on the disk that events leave alone; `null` is 2 % within bounds ([limits](operating/limits.md)), 0 is none";
        put |config, count| config.reserve = Reserve::Bytes(u64::from(count) << 20);
        show |config| match config.reserve {
            Reserve::Usual => or_null(None),
            Reserve::Bytes(bytes) => or_null(Some(bytes >> 20)),
        };

    "backlogMebibytes", backlog_mebibytes: NonZeroU32,
        about "What the unfinished events of one consumer may keep of the log; `null` is no bound";
        put |config, count| config.quota.bytes_max = Some(u64::from(count.get()) << 20);
        show |config| or_null(config.quota.bytes_max.map(|bytes| bytes >> 20));

    "backlogHours", backlog_hours: NonZeroU32,
        about "How old the unfinished events of one consumer may get; `null` is no bound";
        put |config, count| config.quota.age_max = Some(hours(count.get()));
        show |config| or_null(config.quota.age_max.map(in_hours));

    "allowRemote", allow_remote: bool, flag allow_remote;
        put |config, allowed| config.allow_remote = allowed;
        show |config| config.allow_remote.to_string();

    "tlsNames", tls_names: Vec<String>, flag tls_names;
        put |config, names| config.tls_names = names;
        show |config| json!(config.tls_names).to_string();

    "controllers", controllers: bool, flag no_controllers via std::ops::Not::not;
        put |config, run| config.controllers = run;
        show |config| config.controllers.to_string();

    "heartbeats", heartbeats: bool, flag no_heartbeats via std::ops::Not::not;
        put |config, sent| config.heartbeats = sent;
        show |config| config.heartbeats.to_string();

    "smokeMinutes", smoke_minutes: u32, flag smoke_minutes;
        put |config, minutes| config.smoke_minutes = minutes;
        show |config| config.smoke_minutes.to_string();
    "edgeProbe", edge_probe: String, flag edge_probe;
        put |config, url| config.edge_probe = Some(url);
        show |config| json!(config.edge_probe).to_string();

    "alertWebhook", alert_webhook: String, flag alert_webhook;
        put |config, url| config.alert_webhook = Some(url);
        show |config| json!(config.alert_webhook).to_string();

    "ui", ui: bool, flag no_ui via std::ops::Not::not;
        put |config, served| config.ui = served;
        show |config| config.ui.to_string();

    "uiBase", ui_base: String, flag ui_base;
        put |config, base| config.ui_base = base;
        show |config| quote(&config.ui_base);

    "uiMask", ui_mask: Mask,
        about "JSON pointers, such as `/card/number` or `/items/*/iban`, of what is hidden in the data of events from everybody below administrator ([access](operating/access.md))";
        with "super::file::mask";
        put |config, mask| config.mask = mask;
        show |config| pointers(&config.mask);

    "logFilter", log_filter: String, flag log;
        put |config, filter| config.log_filter = filter;
        show |config| quote(&config.log_filter);

    "logFormat", log_format: LogFormat, flag log_format;
        put |config, format| config.log_format = format;
        show |config| config.log_format.word().to_owned();

    "shutdownGraceSeconds", shutdown_grace_seconds: u32,
        about "How long requests and attempts under way may take to finish after the first signal";
        put |config, count| config.shutdown_grace = seconds(count);
        show |config| config.shutdown_grace.as_secs().to_string();

    "telemetry", telemetry: TelemetryFile, flag otlp_endpoint via TelemetryFile::to;
        put |config, telemetry| config.otlp_endpoint = telemetry.otlp_endpoint;
        show |config| json!({"otlpEndpoint": config.otlp_endpoint}).to_string();

    "osbNamespace", osb_namespace: String,
        about "Where instances go whose platform names no namespace ([the service broker](operating/broker.md))";
        put |config, namespace| config.osb.namespace = namespace;
        show |config| quote(&config.osb.namespace);

    "osbMissingVersion", osb_missing_version: OnMissingVersion,
        about "The answer to a request without a version: `400`, `412`, or `accept`, which asks for none";
        put |config, answer| config.osb.missing_version = answer.into();
        show |config| quote(OnMissingVersion::word(config.osb.missing_version));

    "osbDeletedPoll", osb_deleted_poll: OnDeletedPoll,
        about "How a finished removal is told: `succeeded` (200) or `gone` (410)";
        put |config, answer| config.osb.deleted_poll = answer.into();
        show |config| OnDeletedPoll::word(config.osb.deleted_poll).to_owned();

    "osbSyncWaitSeconds", osb_sync_wait_seconds: u32,
        about "How long a platform that cannot ask again is kept waiting before it is answered 504";
        put |config, count| config.osb.sync_wait = seconds(count);
        show |config| config.osb.sync_wait.as_secs().to_string();

    "osbFastWaitSeconds", osb_fast_wait_seconds: u32,
        about "How long a platform that can ask again is kept waiting for a chance to answer 201 instead of 202";
        put |config, count| config.osb.fast_wait = seconds(count);
        show |config| config.osb.fast_wait.as_secs().to_string();

    "osbInitialCatalogWaitSeconds", osb_initial_catalog_wait_seconds: u32,
        about "How long after the start an empty catalog is refused (503) while no registry has been read yet; 0 shows it at once";
        put |config, count| config.osb.initial_catalog_wait = seconds(count);
        show |config| config.osb.initial_catalog_wait.as_secs().to_string();

    "osbAwaitingCatalogMax", osb_awaiting_catalog_max: usize,
        about "How many instances may wait for a registry that has yet to be read; 0 refuses them at once";
        put |config, count| config.osb.awaiting_catalog_max = count;
        show |config| config.osb.awaiting_catalog_max.to_string();

    "osbCatalogMapping", osb_catalog_mapping: Mode,
        about "`perService`: each service is an offering; `perApplication`: each Application is one, and its services are plans";
        put |config, mode| config.catalog.mode = mode;
        show |config| config.catalog.mode.to_string();

    "osbProvisionOnlyOnce", osb_provision_only_once: bool,
        about "Tells platforms, by a label, that a namespace needs a service only once";
        put |config, told| config.catalog.provision_only_once = told;
        show |config| config.catalog.provision_only_once.to_string();
}

fn hours(count: u32) -> Duration {
    Duration::from_secs(u64::from(count) * 3600)
}

fn in_hours(duration: Duration) -> u64 {
    duration.as_secs() / 3600
}

fn seconds(count: u32) -> Duration {
    Duration::from_secs(count.into())
}

fn pointers(mask: &Mask) -> String {
    let pointers = mask.pointers().iter();
    let texts: Vec<String> = pointers.map(ToString::to_string).collect();
    json!(texts).to_string()
}

fn texts(prefixes: &[Prefix]) -> String {
    let texts: Vec<String> = prefixes.iter().map(ToString::to_string).collect();
    json!(texts).to_string()
}

/// A number, or nothing, which a file can say too.
fn or_null(number: Option<u64>) -> String {
    json!(number).to_string()
}

/// A JSON string is a YAML string whatever is in it.
fn quote(text: &str) -> String {
    json!(text).to_string()
}
