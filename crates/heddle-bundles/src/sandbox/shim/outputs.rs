//! What the program wrote into `/out`, read as something that may be a trap.
//!
//! It is the working directory of whoever reads it, so no other part of a path has to be trusted. Links are not followed, and
//! nobody waits for the other end of a pipe. Only plain files count, and only as much of them as is allowed.

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use nix::fcntl::OFlag;
use nix::libc;

use super::report::Outputs;

pub(super) const CREDENTIALS_BYTES_MAX: u64 = 64 << 10;
const MESSAGE_BYTES_MAX: u64 = 4 << 10;
const URL_BYTES_MAX: u64 = 2 << 10;
const PROGRESS_BYTES_MAX: u64 = 1 << 10;

/// The directory that the program hands things out in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Out(());

impl Out {
    /// From here on it is the working directory of this process.
    pub(super) fn enter(path: &Path) -> io::Result<Self> {
        std::env::set_current_dir(path)?;
        Ok(Self(()))
    }

    /// The first line of what the program says it is doing.
    pub(super) fn progress(self) -> Option<String> {
        let text = self.read("progress", PROGRESS_BYTES_MAX).ok()??;
        let line = text.lines().next().unwrap_or_default().trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    /// Everything else, when no process is left that could change it.
    pub(super) fn take(self) -> Outputs {
        let mut refused = Vec::new();
        let mut take = |name: &str, bytes_max| match self.read(name, bytes_max) {
            Ok(text) => text,
            Err(why) => {
                refused.push(format!("/out/{name} {why}"));
                None
            }
        };
        let credentials = take("credentials.json", CREDENTIALS_BYTES_MAX);
        let message = take("message", MESSAGE_BYTES_MAX);
        let dashboard_url = take("dashboard-url", URL_BYTES_MAX);
        Outputs {
            credentials,
            message,
            dashboard_url,
            refused,
        }
    }

    fn read(self, name: &str, bytes_max: u64) -> Result<Option<String>, String> {
        let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(flags.bits())
            .open(name);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
                return Err("is a link, which is not followed".to_owned());
            }
            Err(error) => return Err(format!("cannot be read: {error}")),
        };
        let metadata = file.metadata().map_err(|error| error.to_string())?;
        if !metadata.is_file() {
            return Err("is not a plain file".to_owned());
        }
        let mut bytes = Vec::new();
        let read = file.take(bytes_max + 1).read_to_end(&mut bytes);
        read.map_err(|error| format!("cannot be read: {error}"))?;
        if bytes.len() as u64 > bytes_max {
            return Err(format!("has more than {bytes_max} bytes"));
        }
        String::from_utf8(bytes)
            .map(Some)
            .map_err(|_| "is not text".to_owned())
    }
}
