//! The host of the mesh: what survives its lives, and one life from opening the disk to the end.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use heddle_api::ledger::DeadLetterSelection;
use heddle_mesh::Mesh;
use heddle_mesh::path::source::Source;
use heddle_mesh::who::Who;
use heddle_rt::vfs::MemoryVfs;
use heddle_rt::{Chance, Clock, OnError, Tasks};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use turmoil::net::TcpListener;

use super::super::book::Book;
use super::super::opening::{self, OpenDeps};
use super::super::planted::Planted;
use super::super::wish::{Wish, resources};
use super::wire::{Lines, Wires};

/// The name of the host, and where its door is.
pub(super) const NAME: &str = "heddle";
pub(super) const PORT: u16 = 8080;
/// As long as the real door waits for a head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// A table that is not in force by then waits for a disk that does not come back.
const ROUTE_PATIENCE: Duration = Duration::from_secs(5);
/// What deliveries get when the process is asked to end.
const GRACE: Duration = Duration::from_millis(200);

/// What is there whether the process runs or not.
#[derive(Debug)]
pub(super) struct House {
    pub(super) chance: Chance,
    pub(super) planted: Planted,
    pub(super) book: Arc<Mutex<Book>>,
    pub(super) lines: Lines,
    pub(super) disk: Mutex<MemoryVfs>,
    pub(super) wishes: Mutex<Vec<Wish>>,
    /// The process, while it runs.
    pub(super) life: Mutex<Option<Life>>,
}

/// A process that runs.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) mesh: Mesh,
    pub(super) orders: mpsc::UnboundedSender<Order>,
    pub(super) tasks: Tasks,
    /// A table could not be brought into force.
    pub(super) stuck: Arc<AtomicBool>,
}

/// What a person asks of the process. What they want of triggers is in [`House::wishes`].
#[derive(Debug)]
pub(super) enum Order {
    Route,
    Redrive,
    Tidy,
    /// Answered when everything is safe.
    Settle(oneshot::Sender<()>),
    Close,
}

impl House {
    /// The process from its start to its end, unless it is struck down before.
    pub(super) async fn live(self: Arc<Self>) -> turmoil::Result {
        let elapsed = turmoil::sim_elapsed().unwrap_or_default();
        let start = Timestamp::from_second(1_800_000_000)?.checked_add(elapsed)?;
        let (clock, tasks) = (Clock::simulated(start), Tasks::new(NAME));
        let mesh = opening::open(OpenDeps {
            clock: clock.clone(),
            chance: Chance::seeded(self.chance.u64()),
            disk: self.disk.lock().clone(),
            tasks: tasks.clone(),
            connect: Arc::new(Wires {
                lines: Arc::clone(&self.lines),
                life: self.book.lock().life,
            }),
            planted: self.planted,
        })?;
        let (orders, mut ordered) = mpsc::unbounded_channel();
        let life = Life {
            mesh,
            orders,
            tasks: tasks.clone(),
            stuck: Arc::default(),
        };
        *self.life.lock() = Some(life.clone());
        let listener = TcpListener::bind(("0.0.0.0", PORT)).await?;
        let serving = serve(listener, life.mesh.source(), tasks.child("guests"));
        tasks.spawn("door", OnError::EndProcess, serving);
        self.route(&clock, &life).await;
        while let Some(order) = ordered.recv().await {
            match order {
                Order::Route => self.route(&clock, &life).await,
                Order::Redrive => redrive(&clock, &life.mesh).await,
                Order::Tidy => {
                    let tidying = life.mesh.tidy();
                    clock.timeout(Duration::from_secs(1), tidying).await.ok();
                }
                Order::Settle(settled) => {
                    life.mesh.settled().await;
                    settled.send(()).ok();
                }
                Order::Close => {
                    life.mesh.close(GRACE).await;
                    // The last one who knows the mesh lets go of it here, where there is a network to say goodbye on.
                    self.life.lock().take();
                    tasks.cancel();
                    tasks.join().await;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Brings what users want into force.
    async fn route(&self, clock: &Clock, life: &Life) {
        let resources = resources(&self.wishes.lock());
        let routing = life.mesh.route(&resources);
        let routed = clock.timeout(ROUTE_PATIENCE, routing).await;
        life.stuck.fetch_or(routed.is_err(), Ordering::Relaxed);
    }
}

async fn redrive(clock: &Clock, mesh: &Mesh) {
    let all = DeadLetterSelection {
        all: true,
        ..DeadLetterSelection::default()
    };
    let redriving = mesh.redrive(&all, "a person");
    clock.timeout(Duration::from_secs(1), redriving).await.ok();
}

/// The door for publishers, with the limits of the real one that matter on a network which loses things.
async fn serve(listener: TcpListener, source: Source, guests: Tasks) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        let source = source.clone();
        let service = hyper::service::service_fn(move |request| {
            let source = source.clone();
            async move { Ok::<_, Infallible>(source.handle(&Who::Anonymous, request).await) }
        });
        let conversation = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .auto_date_header(false)
            .serve_connection(TokioIo::new(stream), service);
        guests.spawn("guest", OnError::Report, async move {
            // A connection that breaks is what this network is for.
            drop(conversation.await);
        });
    }
}
