//! A heddle under test: the real program as a process of its own, on a directory that the benchmark removes.
//!
//! Brokers and triggers are declared through the resource API like anybody's, and are waited for until they are Ready.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use heddle_api::broker::{CLASS, CLASS_ANNOTATION};
use heddle_api::duck::{DeliverySpec, Destination};
use heddle_api::filter::Filter;
use heddle_api::trigger::TriggerFilter;
use heddle_api::{Broker, Trigger};
use heddle_rt::{OnError, Tasks};
use kube::api::{Api, ListParams, PostParams};
use serde_json::Value;

use super::super::process::{self, Usage};
use super::programs::{self, Running};
use super::template::SOURCE;
use super::{load, wire};
use heddle::client::{ClientArgs, Remote};
use heddle::failure::Failure;
use heddle::wire::World;

/// Where brokers and triggers live.
const NAMESPACE: &str = "default";
/// The label that counts the triggers of one broker.
const LABEL: &str = "heddle.dev/bench";
/// How many objects are created at once.
const CREATORS: u32 = 64;

const POLL: Duration = Duration::from_millis(50);
/// Recovery is measured in milliseconds, so its end is looked for more often.
const START_POLL: Duration = Duration::from_millis(1);
/// A failsafe only: without progress for this long something is wrong, and a benchmark should say so.
pub(crate) const STALL_MAX: Duration = Duration::from_secs(120);

/// A server is at rest when it used less than this share of a core for a while.
const REST_CORES: f64 = 0.05;
const REST_WINDOW: Duration = Duration::from_millis(500);
/// Some work never rests, such as trying again to reach a subscriber that is down.
const REST_WAIT_MAX: Duration = Duration::from_secs(30);

/// What a trigger asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// All events of the benchmark.
    Everything,
    /// Types that no event has: nine of ten by exact value, the tenth by prefix.
    Nothing,
    /// The same as CloudEvents SQL, with a condition behind it that no index helps with.
    NothingInSql,
}

/// A heddle that answers.
#[derive(Debug)]
pub(crate) struct Server<'a> {
    world: &'a World,
    dir: PathBuf,
    running: Running,
    /// The listener that takes events.
    pub(crate) events: SocketAddr,
    /// The listener that takes everything else.
    pub(crate) control: SocketAddr,
    /// What it was started with besides the usual.
    options: &'static [&'static str],
}

impl<'a> Server<'a> {
    /// Starts heddle on a directory and waits until it is ready.
    pub(crate) async fn start(world: &'a World, dir: PathBuf) -> anyhow::Result<Self> {
        Self::start_with(world, dir, &[]).await
    }

    /// The same, with further options.
    pub(crate) async fn start_with(
        world: &'a World,
        dir: PathBuf,
        options: &'static [&'static str],
    ) -> anyhow::Result<Self> {
        world
            .vfs
            .create_dir_all(&dir)
            .with_context(|| format!("cannot create {}", dir.display()))?;
        let (running, events, control) = launch(world, &dir, options).await?;
        Ok(Self {
            world,
            dir,
            running,
            events,
            control,
            options,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.running.pid()
    }

    pub(crate) fn usage(&self) -> anyhow::Result<Usage> {
        process::usage(Some(self.pid()))
    }

    /// Kills it, starts it again and answers how long it took from the start to the first accepted event.
    pub(crate) async fn recover(&mut self, path: &str) -> anyhow::Result<Duration> {
        self.running.kill();
        let clock = &self.world.clock;
        let started = clock.monotonic();
        (self.running, self.events, self.control) =
            launch(self.world, &self.dir, self.options).await?;
        let elapsed = || clock.monotonic().saturating_sub(started);
        loop {
            let one = load::Args {
                count: Some(1),
                connections: 1,
                ..load::Args::to(self.events, path)
            };
            match load::generate(one, self.world.clone()).await {
                Ok(_) => return Ok(elapsed()),
                Err(error) if elapsed() > STALL_MAX => {
                    return Err(error.context("heddle did not accept events again"));
                }
                Err(_) => clock.sleep(START_POLL).await,
            }
        }
    }

    /// Declares a Broker and answers the path that its events are posted to.
    pub(crate) async fn broker(&self, name: &str) -> anyhow::Result<String> {
        let brokers: Api<Broker> = Api::namespaced(self.client().await?, NAMESPACE);
        let mut broker = Broker::new(name, Default::default());
        broker.metadata.annotations =
            Some([(CLASS_ANNOTATION.to_owned(), CLASS.to_owned())].into());
        let create = brokers.create(&PostParams::default(), &broker).await;
        create.with_context(|| format!("cannot create broker {name}"))?;
        let started = self.world.clock.monotonic();
        loop {
            let status = brokers.get(name).await?.status.unwrap_or_default();
            if status.conditions.is_ready() {
                return Ok(format!("/broker/{NAMESPACE}/{name}"));
            }
            self.wait(started, &format!("broker {name} is not Ready"))
                .await?;
        }
    }

    /// Declares `count` Triggers on a Broker and waits until all of them are Ready and the server is at rest.
    pub(crate) async fn triggers(
        &self,
        broker: &str,
        wants: Wants,
        count: u32,
        subscriber: SocketAddr,
    ) -> anyhow::Result<()> {
        let triggers = self.all_triggers().await?;
        let (tasks, next) = (Tasks::new("creators"), Arc::new(AtomicU32::new(0)));
        for creator in 0..CREATORS.min(count) {
            let (triggers, next, broker) = (triggers.clone(), next.clone(), broker.to_owned());
            tasks.spawn(&format!("creator-{creator}"), OnError::Report, async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return Ok::<(), kube::Error>(());
                    }
                    let trigger = trigger(&broker, wants, number, subscriber);
                    triggers.create(&PostParams::default(), &trigger).await?;
                }
            });
        }
        tasks.join().await;
        if let Some(failure) = tasks.failures().into_iter().next() {
            return Err(failure.into());
        }
        self.all_ready(&triggers, broker, count).await?;
        self.rest().await
    }

    /// Declares Triggers on a Broker that want everything for subscribers which may not be well, and waits until all of
    /// them are Ready.
    pub(super) async fn neighbours(
        &self,
        broker: &str,
        subscribers: &[SocketAddr],
    ) -> anyhow::Result<()> {
        let triggers = self.all_triggers().await?;
        let label = format!("{broker}-neighbours");
        for (number, subscriber) in (0..).zip(subscribers) {
            let mut neighbour = trigger(&label, Wants::Everything, number, *subscriber);
            neighbour.spec.broker = broker.to_owned();
            neighbour.spec.delivery = Some(DeliverySpec {
                retry: Some(5),
                backoff_delay: Some("PT0.5S".to_owned()),
                timeout: Some("PT5S".to_owned()),
                ..DeliverySpec::default()
            });
            triggers.create(&PostParams::default(), &neighbour).await?;
        }
        let count = u32::try_from(subscribers.len())?;
        self.all_ready(&triggers, &label, count).await?;
        self.rest().await
    }

    async fn all_triggers(&self) -> anyhow::Result<Api<Trigger>> {
        Ok(Api::namespaced(self.client().await?, NAMESPACE))
    }

    async fn all_ready(
        &self,
        triggers: &Api<Trigger>,
        label: &str,
        count: u32,
    ) -> anyhow::Result<()> {
        let (mut started, mut last) = (self.world.clock.monotonic(), 0);
        loop {
            let ready = ready_triggers(triggers, label).await?;
            if ready == count {
                return Ok(());
            }
            if ready != last {
                (started, last) = (self.world.clock.monotonic(), ready);
            }
            let what = format!("{ready} of {count} triggers of {label} are Ready");
            self.wait(started, &what).await?;
        }
    }

    /// Waits until the server has nothing more to do, or has work that does not end.
    pub(crate) async fn rest(&self) -> anyhow::Result<()> {
        let clock = &self.world.clock;
        let started = clock.monotonic();
        let mut quiet = 0;
        while quiet < 2 && clock.monotonic().saturating_sub(started) < REST_WAIT_MAX {
            let before = self.usage()?.cpu;
            clock.sleep(REST_WINDOW).await;
            let used = self.usage()?.cpu.saturating_sub(before);
            let at_rest = used.as_secs_f64() < REST_CORES * REST_WINDOW.as_secs_f64();
            quiet = if at_rest { quiet + 1 } else { 0 };
        }
        Ok(())
    }

    async fn wait(&self, started: Duration, what: &str) -> anyhow::Result<()> {
        if self.world.clock.monotonic().saturating_sub(started) > STALL_MAX {
            return Err(Failure::TimedOut(format!("{what} after {STALL_MAX:?}")).into());
        }
        self.world.clock.sleep(POLL).await;
        Ok(())
    }

    pub(crate) async fn client(&self) -> anyhow::Result<kube::Client> {
        let args = ClientArgs {
            kubeconfig: Some(self.dir.join("admin.kubeconfig").into()),
            context: None,
            data_dir: self.dir.clone(),
        };
        Ok(Remote::connect(&args).await?.client())
    }
}

/// Starts the process and waits until it tells where it listens and says that it is ready.
async fn launch(
    world: &World,
    dir: &Path,
    options: &[&str],
) -> anyhow::Result<(Running, SocketAddr, SocketAddr)> {
    let endpoints = dir.join("endpoints.json");
    // A killed server leaves its own behind, which would be taken for the new one's.
    if world.vfs.exists(&endpoints)? {
        world.vfs.remove(&endpoints)?;
    }
    let log = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(dir.join("bench.log"))
        .with_context(|| format!("cannot write a log in {}", dir.display()))?;
    let mut command = programs::heddle()?;
    command.args([
        "serve",
        "--log",
        "warn",
        "--listen",
        "127.0.0.1:0",
        "--events",
        "127.0.0.1:0",
    ]);
    command.arg("--data-dir").arg(dir).args(options);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log);
    let mut running = Running(command.spawn().context("cannot start heddle serve")?);
    let started = world.clock.monotonic();
    loop {
        if world.vfs.exists(&endpoints)? {
            let value: Value = serde_json::from_slice(&world.vfs.read(&endpoints)?)
                .with_context(|| format!("cannot use {}", endpoints.display()))?;
            let (control, events) = (address(&value, "control")?, address(&value, "events")?);
            if matches!(wire::ask(control, "GET", "/readyz").await, Ok((200, _))) {
                return Ok((running, events, control));
            }
        }
        let ended = running.0.try_wait()?;
        let late = world.clock.monotonic().saturating_sub(started) > STALL_MAX;
        if ended.is_some() || late {
            let log = world.vfs.read(&dir.join("bench.log")).unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            let how =
                ended.map_or_else(|| "it still tries".to_owned(), |status| status.to_string());
            bail!("heddle serve did not get ready ({how}): {}", log.trim());
        }
        world.clock.sleep(START_POLL).await;
    }
}

/// The address behind a URL of endpoints.json.
fn address(endpoints: &Value, name: &str) -> anyhow::Result<SocketAddr> {
    let url = endpoints[name].as_str();
    let url = url.with_context(|| format!("endpoints.json does not tell the {name} listener"))?;
    let address = url
        .strip_prefix("http://")
        .and_then(|rest| rest.parse().ok());
    address.with_context(|| format!("the {name} listener {url} is not plain HTTP on an address"))
}

fn trigger(broker: &str, wants: Wants, number: u32, subscriber: SocketAddr) -> Trigger {
    let mut trigger = Trigger::new(&format!("{broker}-{number:06}"), Default::default());
    trigger.metadata.labels = Some([(LABEL.to_owned(), broker.to_owned())].into());
    trigger.spec.broker = broker.to_owned();
    trigger.spec.subscriber = Destination {
        uri: Some(format!("http://{subscriber}/")),
        ..Destination::default()
    };
    // A subscriber that is down is to be waited for as long as a run may take.
    trigger.spec.delivery = Some(DeliverySpec {
        retry: Some(1000),
        backoff_delay: Some("PT1S".to_owned()),
        ..DeliverySpec::default()
    });
    let never = format!("heddle.bench.never.{number:06}");
    let one = |name: &str, value: String| [(name.to_owned(), value)].into();
    match wants {
        Wants::Everything => {
            trigger.spec.filter = Some(TriggerFilter {
                attributes: one("source", SOURCE.to_owned()),
            });
        }
        Wants::Nothing if number % 10 == 9 => {
            trigger.spec.filters = vec![Filter {
                prefix: one("type", never),
                ..Filter::default()
            }];
        }
        Wants::Nothing => {
            trigger.spec.filter = Some(TriggerFilter {
                attributes: one("type", never),
            });
        }
        Wants::NothingInSql => {
            trigger.spec.filters = vec![Filter {
                cesql: Some(format!("type = '{never}' AND subject LIKE 'a%z'")),
                ..Filter::default()
            }];
        }
    }
    trigger
}

/// How many triggers with a label are Ready, counted up to the first page on which one is not.
async fn ready_triggers(triggers: &Api<Trigger>, label: &str) -> anyhow::Result<u32> {
    let mut params = ListParams::default()
        .labels(&format!("{LABEL}={label}"))
        .limit(500);
    let mut ready = 0;
    loop {
        let page = triggers.list(&params).await?;
        let is_ready = |trigger: &&Trigger| {
            let status = trigger.status.as_ref();
            status.is_some_and(|status| status.conditions.is_ready())
        };
        let count = page.items.iter().filter(is_ready).count();
        ready += u32::try_from(count)?;
        let token = page.metadata.continue_.filter(|token| !token.is_empty());
        match token {
            Some(token) if count == page.items.len() => params = params.continue_token(&token),
            _ => return Ok(ready),
        }
    }
}
