//! `heddle restore`: a data directory from a backup.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use heddle_mesh::log::{Log as _, Reserve, embedded};
use heddle_rt::Tasks;
use heddle_store::{Check, Mode, Store};

use crate::backup::manifest::{Listed, Manifest, place};
use crate::backup::server::read_chunks;
use crate::backup::writer::Writer;
use crate::terminal::Terminal;
use crate::wire::{self, STORE, World};

const EXAMPLES: &str = "\
Examples:
  heddle restore /var/backups/heddle-monday --data-dir /var/lib/heddle
  heddle serve --data-dir /var/lib/heddle

The directory must not exist yet, or be empty. Everything in the backup is compared
with its checksums before anything is written. Resource versions and offsets of
events go on far above those that were ever given out, so whatever watched the old
server starts over, and none of them means two things.";

/// Make a data directory from a backup
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// A directory that `heddle backup` wrote
    #[arg(value_name = "SRC")]
    src: PathBuf,

    /// The data directory to make
    #[arg(long, env = "HEDDLE_DATA_DIR", value_name = "DIR")]
    data_dir: PathBuf,
}

pub(super) async fn run(args: Args, world: &World, terminal: &mut Terminal) -> anyhow::Result<()> {
    let vfs = world.vfs.as_ref();
    let manifest = Manifest::load(vfs, &args.src)?;
    terminal.note(&format!("verifying {}", args.src.display()));
    let bytes = manifest.verify(vfs, &args.src)?;
    let mut writer = Writer::begin(world.vfs.clone(), &args.data_dir)?;
    let written = write(&args.src, &manifest, &mut writer);
    let restored = match written {
        Ok(()) => check(writer.dir(), world).await,
        Err(error) => Err(error),
    };
    let objects = writer.end(restored)?;
    terminal.say(&format!(
        "restored {} and {} MiB in all from {}; start it with `heddle serve --data-dir {}`",
        heddle_api::counted(objects, "object"),
        bytes.div_ceil(1 << 20),
        manifest.created,
        args.data_dir.display()
    ))?;
    Ok(())
}

fn write(src: &Path, manifest: &Manifest, writer: &mut Writer) -> anyhow::Result<()> {
    for entry in &manifest.entries {
        let Listed {
            name, mode, size, ..
        } = entry;
        match (&entry.target, &entry.sha256) {
            (Some(target), _) => drop(writer.link(name, target)?),
            (None, None) => drop(writer.directory(name, *mode)?),
            (None, Some(sha256)) => {
                let mut writing = writer.file(name, *mode)?;
                read_chunks(&place(src, name)?, *size, |chunk| writing.add(chunk))?;
                let written = writing.finish()?;
                let same = written.sha256.as_ref() == Some(sha256);
                anyhow::ensure!(same, "{name} changed while it was read");
            }
        }
    }
    Ok(())
}

/// Opens what a start opens, before it counts as restored. Says how many objects there are.
async fn check(dir: &Path, world: &World) -> anyhow::Result<usize> {
    let mut options =
        heddle_store::Options::new(world.vfs.clone(), dir.join(STORE), world.clock.clone());
    options.mode = Mode::Inline;
    options.check = Check::Pages;
    let store = Store::open(options)?;
    let objects = store.stats().objects_count;
    store.close().await;
    let tasks = Tasks::new("restore");
    let log = wire::open_log(dir, world, &tasks, Reserve::default())
        .context("the event log in the backup cannot be used")?;
    let damaged = log.damaged();
    log.close().await;
    anyhow::ensure!(
        damaged == 0,
        "the event log in the backup has damaged records"
    );
    let options = wire::log_options(dir, world, &tasks, Reserve::Bytes(0));
    embedded::skip_offsets(&options).context("the event log in the backup cannot go on")?;
    Ok(objects)
}
