//! The configuration of `heddle serve`: one struct, filled in four steps.
//!
//! Defaults, then the file given with `--config`, then the environment, then flags; the later one
//! wins. Every setting remembers who set it, and `--print-config` shows both as a file that can be
//! used again. A key nobody knows is refused by name, for a typo must not silently mean the default.
//! What can be set is a table (`keys.rs`), from which reading, printing and the page of reference come.

mod file;
mod keys;
#[cfg(test)]
pub(crate) mod reference;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::parser::ValueSource;
use heddle_api::broker::Classes;
use heddle_api::mask::Mask;
use heddle_front::Settings;
use heddle_front::catalog::Rules;
use heddle_mesh::log::Reserve;
use heddle_mesh::path::source::legacy::LegacySettings;
use heddle_mesh::{Quota, Retention};
use heddle_rt::net::egress::Egress;
use serde::Deserialize;

use self::file::parse_file;
use self::keys::{ConfigKey, KEYS};
use crate::alerts::webhook;
use crate::edge;
use crate::failure::Failure;
use crate::files;
use crate::otlp;

/// Where state lives when nobody says otherwise.
pub(crate) const DATA_DIR_DEFAULT: &str = "./heddle-data";

/// What `heddle serve` runs with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Config {
    /// Everything heddle keeps: the store, its keys and the files for clients.
    pub(crate) data_dir: PathBuf,
    /// The control listener; port 0 picks a free one.
    pub(crate) listen: SocketAddr,
    /// The events listener, where publishers send to; port 0 picks a free one.
    pub(crate) events: SocketAddr,
    /// Whether publishers must prove who they are even on this machine. On any other address they always must.
    pub(crate) events_require_identity: bool,
    /// Certificates, in PEM, of the authorities that publishers' certificates are believed from.
    pub(crate) events_client_ca: Option<PathBuf>,
    /// Where events may be delivered to.
    pub(crate) egress: Egress,
    /// Which Brokers are served.
    pub(crate) broker_classes: Classes,
    /// Whether the listeners may be reachable from other machines.
    pub(crate) allow_remote: bool,
    /// Names besides localhost and the listen address that the certificate is good for.
    pub(crate) tls_names: Vec<String>,
    /// Whether the controllers run in this process.
    pub(crate) controllers: bool,
    /// Whether synthetic events measure the health of the mesh.
    pub(crate) heartbeats: bool,
    /// Minutes between two smoke tests; 0 is never.
    pub(crate) smoke_minutes: u32,
    /// Where publishers elsewhere reach the events listener, if that is to be tried.
    pub(crate) edge_probe: Option<String>,
    /// Who is told that an alert fires, or does no longer.
    pub(crate) alert_webhook: Option<String>,
    /// Whether the page is served.
    pub(crate) ui: bool,
    /// What of the data of events is hidden from everybody below administrator.
    pub(crate) mask: Mask,
    /// What stands before the paths of the page, where a proxy has them.
    pub(crate) ui_base: String,
    /// Which log lines are written, as `info` or `info,heddle_store=debug`.
    pub(crate) log_filter: String,
    pub(crate) log_format: LogFormat,
    /// How long open requests may take to finish after the first signal.
    pub(crate) shutdown_grace: Duration,
    /// How long finished events are kept.
    pub(crate) retention: Retention,
    /// What events leave free on the disk.
    pub(crate) reserve: Reserve,
    /// What the backlog of one consumer may keep, unless it says otherwise.
    pub(crate) quota: Quota,
    /// How the publish API of old Kyma is served.
    pub(crate) legacy: LegacySettings,
    /// The OTLP collector that gets a span for each event and attempt; `None` sends none.
    pub(crate) otlp_endpoint: Option<String>,
    /// How platforms are answered.
    pub(crate) osb: Settings,
    /// How Applications become offerings.
    pub(crate) catalog: Rules,
    /// What was set and is not heeded, to be told once there is a log.
    pub(crate) warnings: Vec<String>,
    origins: Vec<(&'static str, Origin)>,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "camelCase")]
pub(crate) enum LogFormat {
    /// For people on a terminal, JSON otherwise
    #[default]
    Auto,
    Human,
    Json,
}

impl LogFormat {
    /// As the file and the command line say it.
    fn word(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Human => "human",
            Self::Json => "json",
        }
    }
}

/// Who set a value, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File,
    Environment,
    Flag,
}

/// The flags of `heddle serve` that end up in [`Config`].
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ConfigArgs {
    /// Where state, keys and client files are kept [default: ./heddle-data]
    #[arg(long, env = "HEDDLE_DATA_DIR", value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,

    /// Address of the control listener; port 0 picks a free port [default: 127.0.0.1:4333]
    #[arg(long, env = "HEDDLE_LISTEN", value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,

    /// Address of the events listener, where events are published [default: 127.0.0.1:4334]
    #[arg(long, env = "HEDDLE_EVENTS_LISTEN", value_name = "ADDRESS")]
    pub(crate) events: Option<SocketAddr>,

    /// Ask publishers who they are even on this machine; other machines are always asked
    #[arg(long, env = "HEDDLE_EVENTS_REQUIRE_IDENTITY", num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "BOOL")]
    pub(crate) events_require_identity: Option<bool>,

    /// Certificates (PEM) of the authorities that publishers' client certificates are believed from
    #[arg(long, env = "HEDDLE_EVENTS_CLIENT_CA", value_name = "FILE")]
    pub(crate) events_client_ca: Option<PathBuf>,

    /// Take from publishers of old Kyma's API only what all its servers took
    #[arg(long, env = "HEDDLE_COMPAT_STRICT", num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "BOOL")]
    pub(crate) compat_strict: Option<bool>,

    /// Let other machines reach the listeners (TLS and a token are still required)
    #[arg(long, env = "HEDDLE_ALLOW_REMOTE", num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "BOOL")]
    pub(crate) allow_remote: Option<bool>,

    /// Another name clients use for this machine, put into the certificate; may be repeated
    #[arg(
        long = "tls-name",
        env = "HEDDLE_TLS_NAMES",
        value_delimiter = ',',
        value_name = "NAME"
    )]
    pub(crate) tls_names: Option<Vec<String>>,

    /// The resource API alone, for when controllers run elsewhere or for comparison
    #[arg(long, env = "HEDDLE_NO_CONTROLLERS", num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "BOOL")]
    pub(crate) no_controllers: Option<bool>,

    /// No synthetic events; whether events arrive is then not measured, and health says that nobody knows
    #[arg(long, env = "HEDDLE_NO_HEARTBEATS", num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "BOOL")]
    pub(crate) no_heartbeats: Option<bool>,

    /// Minutes between two smoke tests of the server itself; 0 is never [default: 10]
    #[arg(long, env = "HEDDLE_SMOKE_MINUTES", value_name = "MINUTES")]
    pub(crate) smoke_minutes: Option<u32>,
    /// Publish a synthetic event there now and then, as publishers elsewhere do: https://NAME:PORT [default: none]
    #[arg(long, env = "HEDDLE_EDGE_PROBE", value_name = "URL")]
    pub(crate) edge_probe: Option<String>,

    /// Post a CloudEvent there whenever an alert fires or is resolved: https://HOST/PATH [default: none]
    #[arg(long, env = "HEDDLE_ALERT_WEBHOOK", value_name = "URL")]
    pub(crate) alert_webhook: Option<String>,

    /// Leave the page out: nothing is served below /ui/
    #[arg(long, env = "HEDDLE_NO_UI", num_args = 0..=1, default_missing_value = "true", require_equals = true, value_name = "BOOL")]
    pub(crate) no_ui: Option<bool>,

    /// Path below which a proxy has this server, such as /heddle; the proxy takes it off again [default: none]
    #[arg(long, env = "HEDDLE_UI_BASE", value_name = "PATH")]
    pub(crate) ui_base: Option<String>,

    /// Configuration file (YAML)
    #[arg(long, env = "HEDDLE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Log level or filter, such as `debug` or `info,heddle_store=trace` [default: info]
    #[arg(long, env = "HEDDLE_LOG", value_name = "FILTER")]
    pub(crate) log: Option<String>,

    /// How log lines look [default: auto]
    #[arg(long, env = "HEDDLE_LOG_FORMAT", value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,

    /// OTLP collector that gets a span for each event and attempt, such as http://127.0.0.1:4318 [default: none]
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", value_name = "URL")]
    pub(crate) otlp_endpoint: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: DATA_DIR_DEFAULT.into(),
            listen: SocketAddr::from(([127, 0, 0, 1], 4333)),
            events: SocketAddr::from(([127, 0, 0, 1], 4334)),
            events_require_identity: false,
            events_client_ca: None,
            egress: Egress::default(),
            broker_classes: Classes::default(),
            allow_remote: false,
            tls_names: Vec::new(),
            controllers: true,
            heartbeats: true,
            smoke_minutes: 10,
            edge_probe: None,
            alert_webhook: None,
            ui: true,
            ui_base: String::new(),
            log_filter: "info".to_owned(),
            log_format: LogFormat::Auto,
            shutdown_grace: Duration::from_secs(20),
            retention: Retention::default(),
            reserve: Reserve::default(),
            quota: Quota::default(),
            legacy: LegacySettings::default(),
            mask: Mask::default(),
            otlp_endpoint: None,
            osb: Settings::default(),
            catalog: Rules::default(),
            warnings: Vec::new(),
            origins: Vec::new(),
        }
    }
}

impl Config {
    /// Defaults, file, environment, flags. `source` tells whether clap took an argument from the
    /// environment or from the command line.
    pub(crate) fn load(
        args: ConfigArgs,
        source: impl Fn(&str) -> Option<ValueSource>,
    ) -> anyhow::Result<Self> {
        let mut config = Self::default();
        if let Some(path) = &args.config {
            config.take_file(parse_file(path, &files::read_text(path)?)?);
        }
        config.take_args(args, |id| match source(id) {
            Some(ValueSource::EnvVariable) => Origin::Environment,
            _ => Origin::Flag,
        });
        config.check()?;
        Ok(config)
    }

    fn take_args(&mut self, mut args: ConfigArgs, origin: impl Fn(&str) -> Origin) {
        let endpoint = args.otlp_endpoint.take();
        args.otlp_endpoint = self.heeded_endpoint(origin("otlp_endpoint"), endpoint);
        self.put_args(args, origin);
    }

    /// OpenTelemetry takes an empty variable for none. The variable is there for every program of a machine or a pod, and so
    /// is no wish that this one must fulfil; a flag or a file is.
    fn heeded_endpoint(&mut self, origin: Origin, endpoint: Option<String>) -> Option<String> {
        let endpoint = endpoint.filter(|endpoint| !endpoint.is_empty())?;
        if origin == Origin::Environment
            && let Err(reason) = otlp::check(&endpoint)
        {
            let warning = format!("OTEL_EXPORTER_OTLP_ENDPOINT is ignored: {reason}");
            self.warnings.push(warning);
            return None;
        }
        Some(endpoint)
    }

    fn set<T>(
        &mut self,
        key: &'static str,
        origin: Origin,
        value: Option<T>,
        put: impl FnOnce(&mut Self, T),
    ) {
        let Some(value) = value else { return };
        put(self, value);
        self.origins.retain(|(known, _)| *known != key);
        self.origins.push((key, origin));
    }

    /// A listener that others can reach is a decision, not an accident; and spans that were asked for are sent.
    fn check(&self) -> Result<(), Failure> {
        if let Some(endpoint) = &self.otlp_endpoint {
            otlp::check(endpoint)?;
        }
        if let Some(url) = &self.edge_probe {
            edge::check(url)?;
            if !self.heartbeats {
                let text = "--edge-probe publishes synthetic events, and --no-heartbeats switches them off: leave one of them out";
                return Err(Failure::Usage(text.to_owned()));
            }
        }
        if let Some(url) = &self.alert_webhook {
            webhook::check(url)?;
        }
        check_base(&self.ui_base)?;
        let mut listeners = [self.listen, self.events].into_iter();
        match listeners.find(|address| !is_loopback(address.ip())) {
            Some(address) if !self.allow_remote => Err(Failure::Usage(format!(
                "refusing to listen on {address}: other machines could reach it; pass --allow-remote if that is meant",
            ))),
            _ => Ok(()),
        }
    }

    /// How often smoke tests are run, if they are: they arrive where heartbeats do, and need controllers.
    pub(crate) fn smoke_period(&self) -> Option<Duration> {
        let minutes = u64::from(self.smoke_minutes);
        let able = self.heartbeats && self.controllers && minutes > 0;
        able.then(|| Duration::from_secs(minutes * 60))
    }

    /// Whether publishers are asked who they are.
    pub(crate) fn asks_publishers(&self) -> bool {
        self.events_require_identity || !is_loopback(self.events.ip())
    }

    /// Every key with its value, as YAML a file can hold, and who set it.
    pub(crate) fn print(&self) -> String {
        let line = |key: &ConfigKey| {
            let (name, value) = (key.name, (key.show)(self));
            format!("{name}: {value}  # {}\n", self.origin(name).describe())
        };
        KEYS.iter().map(line).collect()
    }

    fn origin(&self, key: &str) -> Origin {
        self.origins
            .iter()
            .find(|(known, _)| *known == key)
            .map_or(Origin::Default, |(_, origin)| *origin)
    }
}

impl Origin {
    fn describe(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File => "from the file",
            Self::Environment => "from the environment",
            Self::Flag => "from a flag",
        }
    }
}

/// A path that can stand before others in a link: it begins with a slash, ends without one, and has nothing to escape.
fn check_base(base: &str) -> Result<(), Failure> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.~/".contains(letter);
    let is_path = base.starts_with('/') && !base.ends_with('/') && !base.contains("//");
    if base.is_empty() || (is_path && base.chars().all(is_plain)) {
        return Ok(());
    }
    let text = format!(
        "--ui-base {base:?} is no path: write it as /heddle, with a slash before it and none behind it"
    );
    Err(Failure::Usage(text))
}

/// Whether only this machine can reach an address.
pub(crate) fn is_loopback(ip: IpAddr) -> bool {
    ip.to_canonical().is_loopback()
}

#[cfg(test)]
mod tests;
