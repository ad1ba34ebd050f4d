//! How soon is the catalog there when it is large, plain and compressed, and how soon does a platform learn that it has it
//! already?
//!
//! One platform on one connection, as fast as it is answered. The bundles come from directories of images, so that no
//! registry is needed for it.

use std::net::SocketAddr;

use anyhow::{Context as _, ensure};

use super::super::front::Front;
use super::super::mesh::server::Server;
use super::super::report::{Goal, Row, Unit};
use super::super::wire::{self, Wire};
use super::images::Images;
use super::readings::Readings;
use super::{Bench, Neighbours, millis};
use heddle::wire::World;
use heddle_rt::metrics::Latencies;

/// Few enough for the index of a directory.
const DIRECTORY_IMAGES: u32 = 10_000;
/// How often the catalog is asked for, whole and by its tag.
const WHOLE_REQUESTS: u32 = 1_000;
const KNOWN_REQUESTS: u32 = 5_000;
/// Before each, not measured.
const WARM_UP_REQUESTS: u32 = 20;
const GOAL_MILLIS: f64 = 5.0;
/// The header lines by which platforms that take no compression differ from those that do.
const PLAIN: &str = "";
const GZIP: &str = "accept-encoding: gzip\r\n";

pub(super) async fn run(bench: &mut Bench<'_>) -> anyhow::Result<()> {
    let count = bench.images.last().copied().unwrap_or_default();
    let (world, dir) = (bench.world, bench.dir.join("catalog"));
    let home = dir.join("heddle");
    let server = Server::start(world, home.clone()).await?;
    bench.terminal.note(&format!("offering {count} bundles"));
    let images = Images::pack(world, &dir.join("bundle"))?;
    for (number, first) in (0..count).step_by(DIRECTORY_IMAGES as usize).enumerate() {
        let numbers = first..count.min(first + DIRECTORY_IMAGES);
        let (name, many) = (format!("bench-{number}"), numbers.end - numbers.start);
        let place = dir.join(&name);
        tokio::task::block_in_place(|| images.lay_out(&place, numbers))?;
        let url = place.to_str().context("the directory's name is no text")?;
        let (readings, _) = Readings::declare(world, &server, &name, "oci-layout", url).await?;
        readings.live(many).await?;
    }
    let front = Front::of(&server, world, &home)?;
    front.offered(usize::try_from(count)?).await?;
    server.rest().await?;

    let neighbours = Neighbours::watch(world)?;
    let mut platform = Platform::connect(server.control, &front, world).await?;
    let (bytes, tag) = platform.look(PLAIN).await?;
    let whole = platform.timed(PLAIN, 200, WHOLE_REQUESTS).await?;
    let (small, _) = platform.look(GZIP).await?;
    let compressed = platform.timed(GZIP, 200, WHOLE_REQUESTS).await?;
    let known = format!("if-none-match: {tag}\r\n");
    let known = platform.timed(&known, 304, KNOWN_REQUESTS).await?;
    let foreign_cores = neighbours.cores(world)?;
    for (what, bytes) in [("size", bytes), ("size compressed", small)] {
        let measure = format!("catalog with {count} offerings, {what}");
        let row = Row::figure(measure, bytes as f64 / 1e6, Unit::Megabytes);
        bench.rows([row], foreign_cores);
    }
    for (what, latencies) in [
        ("whole", whole),
        ("whole, compressed", compressed),
        ("known already", known),
    ] {
        bench.rows(rows(count, what, &latencies), foreign_cores);
    }
    Ok(())
}

fn rows(count: u32, what: &str, latencies: &Latencies) -> [Row; 2] {
    [("p50", 0.5), ("p99", 0.99)].map(|(name, share)| {
        let measure = format!("catalog with {count} offerings, {what}, {name}");
        let row = Row::figure(measure, millis(latencies.percentile(share)), Unit::Millis);
        match name {
            "p99" => row.goal(Goal::AtMost(GOAL_MILLIS)),
            _ => row,
        }
    })
}

/// A platform that knows the broker's password.
struct Platform<'a> {
    wire: Wire,
    world: &'a World,
    head: String,
}

impl<'a> Platform<'a> {
    async fn connect(address: SocketAddr, front: &Front, world: &'a World) -> anyhow::Result<Self> {
        let request = front.request("GET", "/v2/catalog").body(())?;
        let mut head = format!("GET {} HTTP/1.1\r\nhost: {address}\r\n", request.uri());
        for (name, value) in request.headers() {
            head.push_str(&format!("{name}: {}\r\n", value.to_str()?));
        }
        let wire = Wire::connect(address).await?;
        Ok(Self { wire, world, head })
    }

    /// The size of the catalog as it is sent, and its tag.
    async fn look(&mut self, lines: &str) -> anyhow::Result<(usize, String)> {
        let request = self.request(lines);
        self.wire.write(request.as_bytes()).await?;
        let frame = self.wire.message().await?.context("no answer")?;
        let tag = wire::header(self.wire.head(frame), "etag").context("the catalog has no tag")?;
        let found = (
            self.wire.body(frame).len(),
            String::from_utf8_lossy(tag).into_owned(),
        );
        self.wire.consume(frame);
        Ok(found)
    }

    /// Asks so many times, with these header lines.
    async fn timed(&mut self, lines: &str, expected: u16, times: u32) -> anyhow::Result<Latencies> {
        let request = self.request(lines);
        let mut latencies = Latencies::default();
        for time in 0..WARM_UP_REQUESTS + times {
            let started = self.world.clock.monotonic();
            self.wire.write(request.as_bytes()).await?;
            let frame = self.wire.message().await?.context("no answer")?;
            let took = self.world.clock.monotonic().saturating_sub(started);
            let status = wire::status(self.wire.head(frame))?;
            ensure!(status == expected, "the catalog was answered with {status}");
            self.wire.consume(frame);
            if time >= WARM_UP_REQUESTS {
                latencies.record(took);
            }
        }
        Ok(latencies)
    }

    fn request(&self, lines: &str) -> String {
        format!("{}{lines}\r\n", self.head)
    }
}
