//! The one file that knows everybody: who is made from what, in which order, and how it all ends.
//!
//! ```text
//!   lock ─> store ─> API server (seeds itself) ─> log ─> mesh ─> janitor, controllers ─> doors ─> files ─> ready
//!   doors close ─> deliveries drain ─> controllers stop ─> store syncs
//! ```

mod ground;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use heddle_apiserver::{ADMINS, Identity as User, SCRAPERS, Tokens};
use heddle_bundles::sandbox::NetworkRules;
use heddle_controllers::Bundles;
use heddle_front::catalog::refuse_switch;
use heddle_mesh::event::http::Limits as EventLimits;
use heddle_mesh::log::Reserve;
use heddle_mesh::log::embedded::{self, EmbeddedLog};
use heddle_mesh::path::delivery::ConnectionLimits;
use heddle_mesh::path::delivery::courier::{Courier, CourierOptions};
use heddle_mesh::{Mesh, Observer};
use heddle_rt::net::dial::{Internal, Network};
use heddle_rt::net::host::Hosts;
use heddle_rt::net::own::OwnListeners;
use heddle_rt::net::trust::Roots;
use heddle_rt::net::{self, Door};
use heddle_rt::shutdown::{End, Interrupts, Phase};
use heddle_rt::vfs::Lock;
use heddle_rt::{Budget, Chance, Clock, DiskVfs, OnError, Shutdown, Tasks, Vfs};
use heddle_store::OpenError;

pub(crate) use self::ground::Controllers;
pub use self::ground::{Ground, start_controllers};
use crate::alerts::{self, AlertsApi};
use crate::audit::AuditLog;
use crate::backup::server::Backups;
use crate::bundles::{self, Port};
use crate::config::Config;
use crate::control::Control;
use crate::descriptors::{self, Shares};
use crate::edge::EdgeProbe;
use crate::events::EventsDoor;
use crate::failure::Failure;
use crate::files;
use crate::health::HealthApi;
use crate::heartbeats;
use crate::identity::{Identity, IdentityDeps, Published};
use crate::osb;
use crate::otlp::Exporter;
use crate::plane::{EdgeReader, Plane};
use crate::publishers::Publishers;
use crate::session::PageSessions;
use crate::signing::SigningApi;
use crate::smoke::{Smoke, SmokeDeps, SmokeListener};
use crate::tokens;

/// Bytes of chance in what lets smoke tests in.
const SMOKE_PASS_BYTES: usize = 32;

/// The store's own directory below the data directory.
pub(crate) const STORE: &str = "store";

/// Time, chance and files, as the machine has them.
#[derive(Clone, Debug)]
pub struct World {
    pub clock: Clock,
    pub chance: Chance,
    pub vfs: Arc<dyn Vfs>,
}

impl World {
    pub fn real() -> Self {
        Self {
            clock: Clock::system(),
            chance: Chance::system(),
            vfs: Arc::new(DiskVfs),
        }
    }
}

/// A server that answers requests.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) published: Published,
    shutdown: Shutdown,
    tasks: Tasks,
    _lock: Lock,
}

/// Starts everything `config` asks for; returns when requests are answered and clients can know it.
pub(crate) async fn start(config: &Config, world: &World) -> anyhow::Result<Running> {
    let (dir, process_started) = (&config.data_dir, world.clock.now());
    let shares = descriptors::take()?;
    let lock = take(dir, world)?;
    let deps = IdentityDeps {
        vfs: world.vfs.clone(),
        clock: world.clock.clone(),
        chance: world.chance.clone(),
    };
    let identity = Identity::open(deps, dir)?;
    let tasks = Tasks::new("heddle");
    let admin = User::new("heddle-admin", &[ADMINS]);
    let scraper = User::new("heddle-metrics", &[SCRAPERS]);
    let tokens = Tokens::default()
        .with(identity.metrics_token(), scraper)
        .with(identity.admin_token(), admin);
    let hosts = Hosts::named(&config.tls_names);
    let ground = Ground::open(world, dir, &tasks, tokens).await?;
    refuse_switch(&ground.client(), config.catalog.mode).await?;
    ground.start_janitor();
    ground.start_copies(&world.clock);
    let exporter = match &config.otlp_endpoint {
        Some(endpoint) => Some(Exporter::start(endpoint, world, &tasks)?),
        None => None,
    };
    let observer = exporter.as_ref().map(Exporter::observer);
    let audit = AuditLog::open(dir, world, &tasks)?;
    audit.start(&ground.tasks);
    let log = Arc::new(open_log(dir, world, &tasks, config.reserve)?);
    let backups = Backups::new(
        world.vfs.clone(),
        dir,
        ground.server.store().clone(),
        log.clone(),
        audit.clone(),
        tasks.child("backup"),
    );
    let own_listeners = OwnListeners::default();
    let budget = Budget::default();
    let heartbeats = heartbeats::bind(world).await?;
    let courier = courier(
        config,
        world,
        &tasks,
        shares,
        budget.clone(),
        &own_listeners,
        heartbeats.internal(),
    );
    let sink_url = Some(heartbeats.url()).filter(|_| config.heartbeats);
    let mesh = open_mesh(config, world, &tasks, log, courier, observer, sink_url)?;
    let asks_who = config.asks_publishers();
    let store = ground.server.store().clone();
    let edge = config.edge_probe.as_ref();
    let edge = edge.map(|url| EdgeProbe::new(url, identity.ca_pem(), world));
    let edge = edge.transpose()?;
    let routing = tasks.child("routing");
    let reader = edge
        .clone()
        .map(|edge| Box::new(edge) as Box<dyn EdgeReader>);
    let plane = Plane::start(mesh.clone(), store, &routing, asks_who, reader);
    let clients = config.events_client_ca.as_deref().map(client_roots);
    let clients = clients.transpose()?;
    let publishers = Arc::new(Publishers::default());
    let (known, client) = (Arc::clone(&publishers), ground.client());
    ground
        .tasks
        .spawn("publishers", OnError::EndProcess, async move {
            known.watch(client).await;
        });
    let (issued, client) = (ground.server.issued(), ground.client());
    let following = tokens::follow(client, issued);
    ground.tasks.spawn("tokens", OnError::EndProcess, following);
    // Opened before anything acts, so that actions of bundles are kept away from them.
    let listener = bind(config.listen).await?;
    let events_listener = bind(config.events).await?;
    let (address, events_address) = (listener.address(), events_listener.address());
    own_listeners.add(events_address);
    let network = NetworkRules {
        egress: config.egress.clone(),
        own_listeners: vec![address, events_address, heartbeats.address()],
    };
    let workshop = bundles::open(dir, world, &tasks, network)?;
    let Controllers {
        numbers,
        health,
        started,
    } = if config.controllers {
        let port: Arc<dyn Bundles> = Arc::new(Port(workshop.clone()));
        ground.start_controllers(world, Some(plane.clone()), Some(port), config)
    } else {
        Controllers::none()
    };

    let credentials = identity.osb_credentials();
    let front = osb::start(config, world, &ground, credentials);
    let doors = tasks.child("doors");
    let smoke = Smoke::new(SmokeDeps {
        client: ground.client(),
        mesh: mesh.clone(),
        clock: world.clock.clone(),
        chance: world.chance.clone(),
        tasks: ground.tasks.child("smoke"),
    });
    let smoke_pass = world.chance.token(SMOKE_PASS_BYTES);
    let control = Control {
        server: ground.server.clone(),
        mesh: mesh.clone(),
        front,
        workshop,
        audit: audit.clone(),
        backups,
        numbers,
        health: HealthApi::new(health, world.clock.clone(), world.chance.u64()),
        controllers: config.controllers,
        controllers_started: started,
        exporter: exporter.clone(),
        alerts: AlertsApi::default(),
        smoke: smoke.clone(),
        signing: SigningApi {
            client: ground.client(),
            clock: world.clock.clone(),
            chance: world.chance.clone(),
        },
        process_started,
        ui_base: config.ui.then(|| config.ui_base.clone()),
        sessions: PageSessions::new(world.clock.clone(), world.chance.clone(), address.port()),
        hosts: hosts.clone(),
        closing: doors.cancellation(),
    };
    let door = |address, clients| -> anyhow::Result<Door> {
        Ok(Door {
            clock: world.clock.clone(),
            tls: Some(identity.tls(address, &config.tls_names, clients)?),
            plain_on_loopback: true,
            limits: net::Limits {
                connections_max: shares.door,
                address_connections_max: (shares.door - shares.door / 4).max(1),
                drain_timeout: config.shutdown_grace,
                ..net::Limits::default()
            },
            budget: budget.clone(),
        })
    };
    let control_door = door(address, None)?;
    let events_door = door(events_address, clients.as_ref())?;
    let events = EventsDoor {
        source: mesh.source().with_legacy(config.legacy),
        server: ground.server.clone(),
        publishers,
        asks_who,
        smoke: Tokens::default().with(&smoke_pass, User::new("system:heddle:smoke", &[])),
        probe: edge.as_ref().map(EdgeProbe::tokens).unwrap_or_default(),
        hosts,
    };
    alerts::start(control.clone(), &ground.tasks, config, world)?;
    doors.spawn_finishing("control", OnError::EndProcess, |closing| {
        net::serve(listener, control_door, control.router(), closing)
    });
    doors.spawn_finishing("events", OnError::EndProcess, |closing| {
        net::serve(events_listener, events_door, events.service(), closing)
    });
    let sink = heartbeats.sink(mesh.heartbeat_sink());
    let sink_door = heartbeats.door(world, &budget);
    doors.spawn_finishing("heartbeats", OnError::EndProcess, |closing| {
        net::serve(heartbeats.listener, sink_door, sink, closing)
    });
    let published = identity.publish(address, events_address)?;
    plane.serve_at(Some(published.events.clone()));
    smoke.listen(SmokeListener::at(&published, &smoke_pass).await?);
    let every = config.smoke_period();
    let smoking = smoke.run(every);
    ground.tasks.spawn("smoke", OnError::EndProcess, smoking);
    if let Some(edge) = edge {
        let connections = doors.child("edge");
        doors.spawn("edge probe", OnError::EndProcess, edge.run(connections));
    }

    let mut shutdown = Shutdown::new(world.clock.clone(), config.shutdown_grace);
    shutdown.on(Phase::DoorsClose, async move {
        doors.cancel();
        doors.join().await;
    });
    let grace = config.shutdown_grace / DELIVERIES_SHARE;
    shutdown.on(Phase::DeliveriesDrain, async move {
        mesh.close(grace).await;
    });
    if let Some(exporter) = exporter {
        let patience = config.shutdown_grace / SPANS_SHARE;
        // Deliveries were the last to have something to tell.
        shutdown.on(Phase::ControllersStop, async move {
            exporter.close(patience).await;
        });
    }
    let control_tasks = ground.tasks.clone();
    shutdown.on(Phase::ControllersStop, async move {
        control_tasks.cancel();
        control_tasks.join().await;
    });
    shutdown.on(Phase::StoreSyncs, async move {
        audit.close().await;
        ground.server.store().close().await
    });
    Ok(Running {
        published,
        shutdown,
        tasks,
        _lock: lock,
    })
}

impl Running {
    /// Serves until a signal, or until a part fails that the rest cannot do without.
    pub(crate) async fn until_ended(self, interrupts: &mut Interrupts) -> anyhow::Result<End> {
        let failed = tokio::select! {
            () = interrupts.next() => None,
            failure = self.tasks.ended_by() => Some(failure),
        };
        let end = self.shutdown.run(interrupts).await;
        match failed {
            Some(failure) => Err(failure.into()),
            None => Ok(end),
        }
    }
}

/// The part of the grace period that attempts under way get; what they do not finish is delivered after the restart.
const DELIVERIES_SHARE: u32 = 2;

/// The part of the grace period in which a collector may take the last spans.
const SPANS_SHARE: u32 = 4;
/// The authorities that publishers' certificates are believed from.
fn client_roots(path: &Path) -> anyhow::Result<Roots> {
    let pem = files::read_text(path)?;
    Roots::parse(&pem).with_context(|| format!("cannot use {}", path.display()))
}

async fn bind(address: std::net::SocketAddr) -> anyhow::Result<net::Listener> {
    net::bind(address)
        .await
        .with_context(|| format!("cannot listen on {address}"))
}

/// The log below the data directory.
pub(crate) fn open_log(
    dir: &Path,
    world: &World,
    tasks: &Tasks,
    reserve: Reserve,
) -> anyhow::Result<EmbeddedLog> {
    let options = log_options(dir, world, tasks, reserve);
    EmbeddedLog::open(options).context("cannot open the event log")
}

/// How the log of a data directory is opened.
pub(crate) fn log_options(
    dir: &Path,
    world: &World,
    tasks: &Tasks,
    reserve: Reserve,
) -> embedded::Options {
    embedded::Options {
        vfs: world.vfs.clone(),
        dir: dir.join("events"),
        clock: world.clock.clone(),
        tasks: tasks.child("log"),
        mode: heddle_store::Mode::Thread,
        segment_bytes: None,
        reserve,
    }
}

/// The mesh on a log.
fn open_mesh(
    config: &Config,
    world: &World,
    tasks: &Tasks,
    log: Arc<EmbeddedLog>,
    courier: Courier,
    observer: Option<Arc<dyn Observer>>,
    heartbeat_sink: Option<String>,
) -> anyhow::Result<Mesh> {
    let limits = EventLimits::default();
    let options = heddle_mesh::Options {
        clock: world.clock.clone(),
        chance: world.chance.clone(),
        tasks: tasks.clone(),
        log,
        courier,
        retention: config.retention,
        quota: config.quota,
        limits,
        mask: Arc::new(config.mask.clone()),
        observer,
        heartbeat_sink,
    };
    Mesh::open(options).context("cannot take up the events of the last run")
}

/// Who carries events to subscribers.
fn courier(
    config: &Config,
    world: &World,
    tasks: &Tasks,
    shares: Shares,
    budget: Budget,
    own_listeners: &OwnListeners,
    internal: Internal,
) -> Courier {
    let (clock, egress, own) = (
        world.clock.clone(),
        config.egress.clone(),
        own_listeners.clone(),
    );
    let network = Network::beside_and_within(clock, egress, own, internal);
    Courier::new(CourierOptions {
        tasks: tasks.child("connections"),
        clock: world.clock.clone(),
        connect: Arc::new(network),
        limits: ConnectionLimits {
            all_max: shares.outgoing,
            open_max: shares.destination,
            idle_max: shares.destination,
            ..ConnectionLimits::default()
        },
        replies: EventLimits::default(),
        budget,
    })
}

/// Why there is no store, and what to do about a damaged one.
pub(crate) fn refuse_store(dir: &Path, error: OpenError) -> anyhow::Error {
    match error {
        OpenError::Corrupt { .. } => anyhow::anyhow!(
            "{error}; `heddle repair resources --data-dir {} --dry-run` says what can be kept",
            dir.display()
        ),
        other => other.into(),
    }
}

/// Makes the data directory and takes it for this process.
fn take(dir: &Path, world: &World) -> anyhow::Result<Lock> {
    world
        .vfs
        .create_dir_all(dir)
        .with_context(|| format!("cannot create {}", dir.display()))?;
    world.vfs.lock(&dir.join("lock")).map_err(|error| {
        if error.kind() == std::io::ErrorKind::ResourceBusy {
            let text = format!(
                "{} is used by another heddle; stop that one, or give this one its own --data-dir",
                dir.display()
            );
            return Failure::Conflict(text).into();
        }
        anyhow::Error::new(error).context(format!("cannot lock {}", dir.display()))
    })
}

/// The same for a directory that must be there already.
pub(crate) fn take_existing(dir: &Path, world: &World) -> anyhow::Result<Lock> {
    if !world.vfs.exists(dir)? {
        let text = format!("there is no directory {}", dir.display());
        return Err(Failure::NotFound(text).into());
    }
    take(dir, world)
}
