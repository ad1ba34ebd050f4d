//! The log and its journal as files of one moment, for a copy made while events come in.
//!
//! The journal is taken first, its snapshots before its records, and the log after it: whatever the journal speaks of is then
//! in the log. What happened in between may be done again after a restore, as after a loss of power. The mirror of the
//! journal is left out: a start makes it again.

use std::io;
use std::path::{Path, PathBuf};

use heddle_store::events::Export;

use super::EmbeddedLog;
use super::open::{EVENTS_DIR, JOURNAL_DIR};
use super::snapshots::PREFIX;

/// A file of the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// Below the directory of the log, with a slash.
    pub name: String,
    pub content: Content,
}

/// What goes into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Bytes(Vec<u8>),
    /// The first so many bytes of a file, which do not change.
    File {
        path: PathBuf,
        bytes: u64,
    },
}

impl EmbeddedLog {
    /// What to copy: the log first and its oldest segments before the others, because they may be removed first.
    pub fn export(&self) -> io::Result<Vec<Exported>> {
        let (mut journal, dir) = (Vec::new(), self.dir.join(JOURNAL_DIR));
        for name in self.vfs.list(&dir)? {
            if name.starts_with(PREFIX) {
                let bytes = self.vfs.read(&dir.join(&name))?;
                journal.push(exported(JOURNAL_DIR, &name, Content::Bytes(bytes)));
            }
        }
        add(
            JOURNAL_DIR,
            self.journal.mirrored.primary.export()?,
            &mut journal,
        )?;
        let mut files = Vec::new();
        add(EVENTS_DIR, self.events.export()?, &mut files)?;
        files.extend(journal);
        Ok(files)
    }
}

fn add(dir: &str, export: Export, files: &mut Vec<Exported>) -> io::Result<()> {
    for (path, bytes) in export.segments {
        let name = name_of(&path)?;
        files.push(exported(dir, &name, Content::File { path, bytes }));
    }
    let manifest = Content::Bytes(export.manifest);
    files.push(exported(dir, &name_of(&export.manifest_path)?, manifest));
    Ok(())
}

fn exported(dir: &str, name: &str, content: Content) -> Exported {
    Exported {
        name: format!("{dir}/{name}"),
        content,
    }
}

fn name_of(path: &Path) -> io::Result<String> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.map(str::to_owned)
        .ok_or_else(|| io::ErrorKind::InvalidInput.into())
}
