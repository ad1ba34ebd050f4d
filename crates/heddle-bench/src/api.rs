//! `heddle-bench api`: how fast declared objects become what was asked.
//!
//! Creates Applications and runs the controllers in this process until every one is Ready with its
//! HTTPSource and its Channel. The server is the embedded one, in process and on a real disk; or,
//! with `--kubeconfig`, any other, so that both can be compared in one sitting.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use heddle_api::well_known::{INTEGRATION_NAMESPACE, SYSTEM_NAMESPACE};
use heddle_api::{Application, Channel, HTTPSource};
use heddle_apiserver::Tokens;
use heddle_rt::{OnError, Tasks};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use serde_json::{Value, json};

use super::process::{self, Usage};
use heddle::client::{ClientArgs, FIELD_MANAGER, Remote};
use heddle::failure::Failure;
use heddle::output::{self, Format};
use heddle::terminal::Terminal;
use heddle::wire::{self, Ground, World};

const POLL: Duration = Duration::from_millis(100);
const PROGRESS_EVERY: Duration = Duration::from_secs(2);
/// Without any progress for this long something is wrong, and a benchmark should say so.
const STALL_MAX: Duration = Duration::from_secs(120);

const EXAMPLES: &str = "\
Examples:
  heddle-bench api                           the embedded server, 10,000 Applications
  heddle-bench api --kubeconfig kube.config --server-pid $(pidof kube-apiserver) --server-pid $(pidof etcd)
                                             the same work on a real one (it keeps the objects)";

/// Create Applications and measure until all are Ready
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// How many Applications
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,

    /// How many are created at once
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    concurrency: u16,

    /// Measure this server instead of the embedded one
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,

    /// A process of that server whose CPU time and memory count; may be repeated
    #[arg(long = "server-pid", value_name = "PID", requires = "kubeconfig")]
    server_pids: Vec<u32>,

    /// Where the embedded server's files go for the time of the run; should be a real disk
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,

    /// `json` for machines
    #[arg(short, long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Format,
}

/// What was measured.
#[derive(Debug, Default)]
struct Figures {
    objects: u32,
    created: Duration,
    ready: Duration,
    own: Usage,
    servers: Vec<(u32, Usage)>,
    embedded: Option<Embedded>,
}

/// What can be measured only when the server is ours.
#[derive(Debug, Default)]
struct Embedded {
    start_empty: Duration,
    start_full: Duration,
    idle_rss_bytes: u64,
    commits: u64,
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let figures = match &args.kubeconfig {
        Some(path) => remote(&args, path, world, terminal).await?,
        None => embedded(&args, world, terminal).await?,
    };
    let text = match args.output {
        Format::Json => output::json(&figures.to_json()),
        Format::Yaml => output::yaml(&figures.to_json()),
        Format::Table | Format::Wide | Format::Name => figures.to_text(),
    };
    terminal.out.write_all(text.as_bytes())?;
    Ok(terminal.out.flush()?)
}

/// The embedded server in this process, on a directory that is removed afterwards.
async fn embedded(args: &Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<Figures> {
    let dir = args
        .dir
        .join(format!("heddle-bench-{}", world.chance.suffix(6)));
    let result = embedded_in(&dir, args, world, terminal).await;
    std::fs::remove_dir_all(&dir).with_context(|| format!("cannot remove {}", dir.display()))?;
    result
}

async fn embedded_in(
    dir: &Path,
    args: &Args,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<Figures> {
    let (ground, start_empty) = open(dir, world).await?;
    let idle_rss_bytes = process::usage(None)?.rss_bytes;
    ground.start_janitor();
    ground.start_bare_controllers(world);
    let before = process::usage(None)?;
    let load = Load {
        client: ground.client(),
        count: args.count,
        concurrency: args.concurrency,
        world,
    };
    let (created, ready) = load.run(terminal).await?;
    let own = since(before, process::usage(None)?);
    let commits = ground.server.store().stats().commits_count;
    ground.close().await;
    drop(ground);
    let (ground, start_full) = open(dir, world).await?;
    ground.close().await;
    let embedded = Embedded {
        start_empty,
        start_full,
        idle_rss_bytes,
        commits,
    };
    Ok(Figures {
        objects: args.count,
        created,
        ready,
        own,
        servers: Vec::new(),
        embedded: Some(embedded),
    })
}

/// Opens store and server, timed: after this requests are answered.
async fn open(dir: &Path, world: &World) -> anyhow::Result<(Ground, Duration)> {
    let started = world.clock.monotonic();
    let ground = Ground::open(world, dir, &Tasks::new("bench"), Tokens::default()).await?;
    Ok((ground, world.clock.monotonic().saturating_sub(started)))
}

/// The same controllers against another server.
async fn remote(
    args: &Args,
    kubeconfig: &Path,
    world: &World,
    terminal: &mut Terminal,
) -> anyhow::Result<Figures> {
    let client = ClientArgs {
        kubeconfig: Some(kubeconfig.into()),
        context: None,
        data_dir: PathBuf::new(),
    };
    let client = Remote::connect(&client).await?.client();
    prepare(&client, world).await?;
    let tasks = Tasks::new("bench");
    let usages = || {
        args.server_pids
            .iter()
            .map(|pid| Ok((*pid, process::usage(Some(*pid))?)))
            .collect::<anyhow::Result<Vec<_>>>()
    };
    let (before, servers_before) = (process::usage(None)?, usages()?);
    wire::start_controllers(&tasks, world, client.clone());
    let load = Load {
        client,
        count: args.count,
        concurrency: args.concurrency,
        world,
    };
    let (created, ready) = load.run(terminal).await?;
    let own = since(before, process::usage(None)?);
    let after = usages()?;
    let servers = servers_before
        .iter()
        .zip(after)
        .map(|((_, before), (pid, after))| (pid, since(*before, after)))
        .collect();
    tasks.cancel();
    tasks.join().await;
    Ok(Figures {
        objects: args.count,
        created,
        ready,
        own,
        servers,
        embedded: None,
    })
}

fn since(before: Usage, after: Usage) -> Usage {
    Usage {
        cpu: after.cpu.saturating_sub(before.cpu),
        rss_bytes: after.rss_bytes,
    }
}

/// Definitions and namespaces, which the embedded server brings itself.
async fn prepare(client: &kube::Client, world: &World) -> anyhow::Result<()> {
    let params = PatchParams::apply(FIELD_MANAGER).force();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for name in [SYSTEM_NAMESPACE, INTEGRATION_NAMESPACE] {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        namespaces
            .patch(name, &params, &Patch::Apply(namespace))
            .await
            .with_context(|| format!("namespace {name}"))?;
    }
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in heddle_api::crds() {
        let name = crd.metadata.name.clone().unwrap_or_default();
        definitions
            .patch(&name, &params, &Patch::Apply(crd))
            .await
            .with_context(|| format!("definition {name}"))?;
    }
    // The last kind defined is served last.
    let started = world.clock.monotonic();
    while Api::<Channel>::all(client.clone())
        .list(&ListParams::default().limit(1))
        .await
        .is_err()
    {
        if world.clock.monotonic().saturating_sub(started) > STALL_MAX {
            return Err(Failure::TimedOut(
                "the server does not serve the kinds just defined".to_owned(),
            )
            .into());
        }
        world.clock.sleep(POLL).await;
    }
    Ok(())
}

/// The work, whoever serves it.
struct Load<'a> {
    client: kube::Client,
    count: u32,
    concurrency: u16,
    world: &'a World,
}

impl Load<'_> {
    /// Times until all are created, and until all are Ready.
    async fn run(&self, terminal: &mut Terminal) -> anyhow::Result<(Duration, Duration)> {
        let label = self.world.chance.suffix(6);
        let (sources, channels) = (self.children::<HTTPSource>(), self.children::<Channel>());
        let before = (count(&sources).await?, count(&channels).await?);
        let started = self.world.clock.monotonic();
        let elapsed = || self.world.clock.monotonic().saturating_sub(started);
        let mut progress = Progress {
            world: self.world,
            told: started,
            changed: started,
            last: 0,
        };
        let tasks = Tasks::new("creators");
        let done = self.create(&tasks, &label);
        while tasks.running() > 0 {
            progress.tell(
                "created",
                done.load(Ordering::Relaxed),
                self.count,
                terminal,
            )?;
            tokio::select! {
                () = tasks.join() => {}
                () = self.world.clock.sleep(POLL) => {}
            }
        }
        if let Some(failure) = tasks.failures().into_iter().next() {
            return Err(failure.into());
        }
        let created = elapsed();
        let wanted = u64::from(self.count);
        loop {
            let made = count(&sources)
                .await?
                .saturating_sub(before.0)
                .min(count(&channels).await?.saturating_sub(before.1));
            if made >= wanted && self.all_ready(&label).await? {
                return Ok((created, elapsed()));
            }
            progress.tell(
                "with source and channel",
                usize::try_from(made)?,
                self.count,
                terminal,
            )?;
            self.world.clock.sleep(POLL).await;
        }
    }

    fn children<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), INTEGRATION_NAMESPACE)
    }

    /// Starts the creators; each takes the next number until none is left.
    fn create(&self, tasks: &Tasks, label: &str) -> Arc<AtomicUsize> {
        let (next, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for creator in 0..self.concurrency {
            let applications: Api<Application> = Api::all(self.client.clone());
            let (next, done, label, count) =
                (next.clone(), done.clone(), label.to_owned(), self.count);
            tasks.spawn(&format!("creator-{creator}"), OnError::Report, async move {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count as usize {
                        return Ok::<(), kube::Error>(());
                    }
                    applications
                        .create(&PostParams::default(), &application(&label, number))
                        .await?;
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        done
    }

    async fn all_ready(&self, label: &str) -> anyhow::Result<bool> {
        let applications: Api<Application> = Api::all(self.client.clone());
        let mut params = ListParams::default()
            .labels(&format!("heddle.dev/bench={label}"))
            .limit(500);
        let mut ready = 0;
        loop {
            let page = applications.list(&params).await?;
            let is_ready = |application: &&Application| {
                application
                    .status
                    .as_ref()
                    .is_some_and(|status| status.conditions.is_ready())
            };
            ready += page.items.iter().filter(is_ready).count();
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(ready == self.count as usize),
            }
        }
    }
}

fn application(label: &str, number: usize) -> Application {
    let mut application =
        Application::new(&format!("bench-{label}-{number:06}"), Default::default());
    application.metadata.labels = Some([("heddle.dev/bench".to_owned(), label.to_owned())].into());
    application.spec.description = format!("application {number} of a benchmark");
    application
}

/// How many objects there are, without reading them: one, and how many remain.
async fn count<K>(api: &Api<K>) -> anyhow::Result<u64>
where
    K: kube::Resource + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let page = api.list(&ListParams::default().limit(1)).await?;
    let remaining = page.metadata.remaining_item_count.unwrap_or(0);
    Ok(page.items.len() as u64 + u64::try_from(remaining).unwrap_or(0))
}

/// Tells people that something happens, and notices when nothing does.
struct Progress<'a> {
    world: &'a World,
    told: Duration,
    changed: Duration,
    last: usize,
}

impl Progress<'_> {
    fn tell(
        &mut self,
        what: &str,
        done: usize,
        total: u32,
        terminal: &mut Terminal,
    ) -> anyhow::Result<()> {
        let now = self.world.clock.monotonic();
        if done != std::mem::replace(&mut self.last, done) {
            self.changed = now;
        }
        if now.saturating_sub(self.changed) > STALL_MAX {
            return Err(Failure::TimedOut(format!(
                "stuck: {done} of {total} {what} for {STALL_MAX:?}"
            ))
            .into());
        }
        if now.saturating_sub(self.told) >= PROGRESS_EVERY {
            self.told = now;
            terminal.note(&format!("{done} of {total} {what}"));
        }
        Ok(())
    }
}

impl Figures {
    fn to_json(&self) -> Value {
        let servers: Vec<Value> = self.servers.iter().map(|(pid, usage)| {
            json!({"pid": pid, "cpuSeconds": usage.cpu.as_secs_f64(), "rssBytes": usage.rss_bytes})
        }).collect();
        let mut value = json!({
            "objects": self.objects,
            "createdSeconds": self.created.as_secs_f64(),
            "readySeconds": self.ready.as_secs_f64(),
            "cpuSeconds": self.own.cpu.as_secs_f64(),
            "cpuSecondsTotal": self.cpu_total().as_secs_f64(),
            "rssBytes": self.own.rss_bytes,
            "servers": servers,
        });
        if let Some(embedded) = &self.embedded {
            value["startEmptySeconds"] = embedded.start_empty.as_secs_f64().into();
            value["startFullSeconds"] = embedded.start_full.as_secs_f64().into();
            value["idleRssBytes"] = embedded.idle_rss_bytes.into();
            value["commits"] = embedded.commits.into();
        }
        value
    }

    fn cpu_total(&self) -> Duration {
        self.servers
            .iter()
            .fold(self.own.cpu, |total, (_, usage)| total + usage.cpu)
    }

    fn to_text(&self) -> String {
        let seconds = |time: Duration| format!("{:.2} s", time.as_secs_f64());
        let megabytes = |bytes: u64| format!("{} MB", bytes / 1_000_000);
        let mut rows = vec![
            (
                format!("{} Applications created", self.objects),
                seconds(self.created),
            ),
            (
                "all Ready, with HTTPSource and Channel".to_owned(),
                seconds(self.ready),
            ),
            ("CPU of this process".to_owned(), seconds(self.own.cpu)),
        ];
        for (pid, usage) in &self.servers {
            rows.push((format!("CPU of process {pid}"), seconds(usage.cpu)));
            rows.push((
                format!("memory of process {pid}"),
                megabytes(usage.rss_bytes),
            ));
        }
        rows.push(("CPU in total".to_owned(), seconds(self.cpu_total())));
        rows.push((
            "memory of this process".to_owned(),
            megabytes(self.own.rss_bytes),
        ));
        if let Some(embedded) = &self.embedded {
            rows.push((
                "commits, each with one sync".to_owned(),
                embedded.commits.to_string(),
            ));
            rows.push((
                "start on an empty store".to_owned(),
                seconds(embedded.start_empty),
            ));
            rows.push((
                "start on the full store".to_owned(),
                seconds(embedded.start_full),
            ));
            rows.push((
                "memory when idle and empty".to_owned(),
                megabytes(embedded.idle_rss_bytes),
            ));
        }
        rows.iter().fold(String::new(), |mut text, (what, value)| {
            writeln!(text, "{what:<42}{value:>12}").expect("writing to a string cannot fail");
            text
        })
    }
}
