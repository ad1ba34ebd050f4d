//! `heddle backup`: everything a server keeps, of one moment, in a directory.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use bytes::Bytes;
use futures::Stream;
use heddle_store::{Mode, Store};
use http::Request;
use http_body_util::BodyExt as _;

use crate::backup::frames::{Frame, Frames};
use crate::backup::manifest::{Listed, Manifest};
use crate::backup::server::read_chunks;
use crate::backup::writer::Writer;
use crate::backup::{Content, Entry, source};
use crate::client::{ClientArgs, Remote, refusal};
use crate::terminal::Terminal;
use crate::wire::{self, STORE, World};

const EXAMPLES: &str = "\
Examples:
  heddle backup /var/backups/heddle-monday   of the running server
  heddle backup there --offline --data-dir /var/lib/heddle
                                             of a directory that no server uses
  heddle restore there --data-dir /var/lib/heddle-again

A backup holds the resources, the event log, the journal, the credentials and what
bundles keep. It is as secret as the data directory.";

/// Progress is told after so much.
const PROGRESS_BYTES: u64 = 256 << 20;

/// Copy everything that a server keeps, while it runs
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// The directory to write; it must not exist yet, or be empty
    #[arg(value_name = "DEST")]
    dest: PathBuf,

    /// Read the data directory of a server that is not running
    #[arg(long)]
    offline: bool,

    #[command(flatten)]
    client: ClientArgs,
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let mut making = Making {
        writer: Writer::begin(world.vfs.clone(), &args.dest)?,
        manifest: Manifest::new(world.clock.now()),
        bytes: 0,
    };
    let made = if args.offline {
        making.offline(&args.client.data_dir, world, terminal).await
    } else {
        making.online(&args.client, terminal).await
    };
    let made = made.and_then(|()| making.verify(world, terminal));
    let Making {
        writer, manifest, ..
    } = making;
    let objects = writer.end(made)?;
    terminal.say(&format!(
        "{} holds {} and {}, verified",
        args.dest.display(),
        heddle_api::counted(manifest.entries.len(), "file"),
        heddle_api::counted(objects, "object")
    ))?;
    Ok(())
}

/// A backup under way.
struct Making {
    writer: Writer,
    manifest: Manifest,
    bytes: u64,
}

impl Making {
    async fn online(&mut self, client: &ClientArgs, terminal: &mut Terminal) -> anyhow::Result<()> {
        let remote = Remote::connect_once(client).await?;
        let request = Request::get("/heddle/v1/backup").body(Vec::new())?;
        let response = remote.open(request).await.with_context(
            || "a server that is not running is backed up with --offline and its --data-dir",
        )?;
        let (parts, body) = response.into_parts();
        if !parts.status.is_success() {
            let body = body.collect().await?.to_bytes();
            return Err(refusal("backup", parts.status, &body).into());
        }
        let mut frames = Frames::new(body.into_data_stream());
        loop {
            match frames.frame().await? {
                Frame::File { name, mode, size } => {
                    let listed = self
                        .receive(&mut frames, &name, mode, size, terminal)
                        .await?;
                    self.manifest.entries.push(listed);
                }
                Frame::Directory { name, mode } => {
                    let listed = self.writer.directory(&name, mode)?;
                    self.manifest.entries.push(listed);
                }
                Frame::Link { name, target } => {
                    let listed = self.writer.link(&name, &target)?;
                    self.manifest.entries.push(listed);
                }
                Frame::End { entries } if entries == self.manifest.entries.len() as u64 => {
                    return Ok(());
                }
                Frame::End { .. } => bail!("the server sent less than it said"),
                Frame::Failed { message } => bail!("the server could not go on: {message}"),
            }
        }
    }

    async fn receive<S, E>(
        &mut self,
        frames: &mut Frames<S>,
        name: &str,
        mode: u32,
        size: u64,
        terminal: &mut Terminal,
    ) -> anyhow::Result<Listed>
    where
        S: Stream<Item = Result<Bytes, E>> + Unpin,
        E: std::error::Error + Send + Sync + 'static,
    {
        let mut writing = self.writer.file(name, mode)?;
        let mut left = size;
        while left > 0 {
            let bytes = frames.bytes(left).await?;
            writing.add(&bytes)?;
            left -= bytes.len() as u64;
            self.progress(bytes.len() as u64, terminal);
        }
        writing.finish()
    }

    async fn offline(
        &mut self,
        dir: &Path,
        world: &World,
        terminal: &mut Terminal,
    ) -> anyhow::Result<()> {
        let _lock = wire::take_existing(dir, world)?;
        let mut options =
            heddle_store::Options::new(world.vfs.clone(), dir.join(STORE), world.clock.clone());
        options.mode = Mode::Inline;
        let store = Store::open(options).map_err(|error| wire::refuse_store(dir, error))?;
        let copy = self.writer.dir().join(".resources.redb");
        store.backup(&copy).await?;
        store.close().await;
        for entry in source::offline(world.vfs.as_ref(), dir, &copy)? {
            let listed = self.copy(&entry, terminal)?;
            self.manifest.entries.push(listed);
        }
        Ok(world.vfs.remove(&copy)?)
    }

    fn copy(&mut self, entry: &Entry, terminal: &mut Terminal) -> anyhow::Result<Listed> {
        let name = &entry.name;
        self.progress(entry.content.bytes(), terminal);
        match &entry.content {
            Content::Directory { mode } => self.writer.directory(name, *mode),
            Content::Link { target } => self.writer.link(name, target),
            Content::Bytes { bytes, mode } => {
                let mut writing = self.writer.file(name, *mode)?;
                writing.add(bytes)?;
                writing.finish()
            }
            Content::File { path, bytes, mode } => {
                let mut writing = self.writer.file(name, *mode)?;
                read_chunks(path, *bytes, |chunk| writing.add(chunk))?;
                writing.finish()
            }
        }
    }

    /// Reads everything again, and looks at every object. Says how many of them there are.
    fn verify(&self, world: &World, terminal: &mut Terminal) -> anyhow::Result<u64> {
        terminal.note("verifying");
        let (vfs, dir) = (world.vfs.as_ref(), self.writer.dir());
        self.manifest.verify(vfs, dir)?;
        let objects = heddle_store::repair::check(vfs, &dir.join(source::RESOURCES))?;
        self.manifest.save(vfs, dir)?;
        Ok(objects)
    }

    fn progress(&mut self, bytes: u64, terminal: &mut Terminal) {
        let before = self.bytes / PROGRESS_BYTES;
        self.bytes += bytes;
        if self.bytes / PROGRESS_BYTES > before {
            terminal.note(&format!("{} MiB so far", self.bytes >> 20));
        }
    }
}
