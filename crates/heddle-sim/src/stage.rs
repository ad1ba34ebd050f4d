//! Stage: an API server in memory, on simulated time, where stories about the rest of the system are told.

use std::future::Future;
use std::sync::{Arc, OnceLock};

use heddle_apiserver::{
    ADMINS, ApiServer, CONTROLLERS, Identity, InProcess, Limits, Options, Registry, Tokens,
};
use heddle_rt::{Chance, Clock, MemoryVfs};
use heddle_store::{Mode, Store};
use jiff::Timestamp;
use kube::Client;

use crate::weather::Weather;

/// When every story begins.
pub const BEGINNING: i64 = 1_800_000_000;
/// Namespaces that are there from the start.
pub const NAMESPACES: [&str; 4] = ["default", "heddle-system", "kyma-integration", "team-a"];

#[derive(Debug)]
pub struct Stage {
    pub server: ApiServer,
    pub clock: Clock,
    /// Where the server keeps its resources.
    pub disk: MemoryVfs,
}

/// Tells a story on a fresh stage with these namespaces. Waiting costs nothing, and one seed is one run.
pub fn on_stage<F: Future>(
    namespaces: &[&'static str],
    story: impl FnOnce(Stage) -> F,
) -> F::Output {
    simulated(async {
        let clock = clock();
        let disk = MemoryVfs::new();
        let server = open_on(&disk, Arc::clone(registry()), &clock, namespaces).await;
        story(Stage {
            server,
            clock,
            disk,
        })
        .await
    })
}

/// All kinds; made once, since that takes longer than most stories.
pub fn registry() -> &'static Arc<Registry> {
    static REGISTRY: OnceLock<Arc<Registry>> = OnceLock::new();
    REGISTRY.get_or_init(|| Arc::new(Registry::heddle().expect("our own kinds are sound")))
}

/// Runs to the end on one thread, on which time passes only when everybody waits.
pub(crate) fn simulated<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without IO always starts");
    runtime.block_on(future)
}

pub(crate) fn clock() -> Clock {
    Clock::simulated(Timestamp::from_second(BEGINNING).expect("a time in range"))
}

pub(crate) async fn open(
    registry: Arc<Registry>,
    clock: &Clock,
    namespaces: &[&'static str],
) -> ApiServer {
    open_on(&MemoryVfs::new(), registry, clock, namespaces).await
}

async fn open_on(
    disk: &MemoryVfs,
    registry: Arc<Registry>,
    clock: &Clock,
    namespaces: &[&'static str],
) -> ApiServer {
    let mut options = heddle_store::Options::new(disk.shared(), "store", clock.clone());
    options.mode = Mode::Inline;
    let options = Options {
        store: Store::open(options).expect("an empty store opens"),
        clock: clock.clone(),
        chance: Chance::seeded(1),
        registry,
        namespaces: namespaces.to_vec(),
        tokens: Tokens::default(),
        limits: Limits::default(),
    };
    ApiServer::open(options)
        .await
        .expect("a fresh server opens")
}

impl Stage {
    /// As somebody with all rights connects.
    pub fn users(&self) -> Client {
        let user = Identity::new("user", &[ADMINS]);
        Client::new(self.server.in_process(user), "default")
    }

    /// As heddle's own controllers connect.
    pub fn controllers(&self) -> Client {
        Client::new(self.controllers_door(), "default")
    }

    /// The same while so many of a hundred requests fail.
    pub fn bad_weather(&self, chance: Chance, percent: u64) -> Weather {
        Weather::over(self.controllers_door(), chance, percent)
    }

    fn controllers_door(&self) -> InProcess {
        let controllers = Identity::new("controllers", &[CONTROLLERS]);
        self.server.in_process(controllers).lean()
    }

    /// Tells the story while `work` goes on, and the API server tidies up.
    pub async fn play<T>(
        &self,
        story: impl Future<Output = T>,
        work: impl Future<Output = ()>,
    ) -> T {
        tokio::select! {
            end = story => end,
            () = work => unreachable!("controllers run for ever"),
            () = self.server.run_janitor() => unreachable!("the janitor runs for ever"),
        }
    }
}
