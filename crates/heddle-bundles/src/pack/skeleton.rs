//! A bundle to begin with: small, and it works.

#![expect(
    clippy::disallowed_methods,
    reason = "an author's files: no fault is injected there"
)]

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use super::Error;

const BUNDLE: &str = include_str!("skeleton/bundle.yaml");
const SETTINGS: &str = include_str!("skeleton/heddle-bundle.yaml");
const ENTRYPOINT: &str = include_str!("skeleton/entrypoint.sh");

/// What the program of a new bundle calls.
const APPLETS: [&str; 2] = ["sh", "cat"];

/// Writes a bundle to begin with into a directory that does not exist or is empty.
pub fn init(directory: &Path, name: &str) -> Result<(), Error> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.len() > 51 || !name.chars().all(plain) {
        let rule = "use up to 51 lower-case letters, digits and dashes";
        return Err(Error::Invalid(format!("{name:?} is no name: {rule}")));
    }
    let what = || format!("write a bundle to {}", directory.display());
    fs::create_dir_all(directory).map_err(Error::io(what()))?;
    let mut entries = fs::read_dir(directory).map_err(Error::io(what()))?;
    if entries.next().is_some() {
        let text = format!("{} is not empty", directory.display());
        return Err(Error::Invalid(text));
    }
    let write = || {
        fs::create_dir_all(directory.join("rootfs/bin"))?;
        fs::write(directory.join("bundle.yaml"), BUNDLE.replace("NAME", name))?;
        fs::write(directory.join("heddle-bundle.yaml"), SETTINGS)?;
        let entrypoint = directory.join("rootfs/bin/entrypoint");
        fs::write(&entrypoint, ENTRYPOINT)?;
        fs::set_permissions(&entrypoint, Permissions::from_mode(0o755))?;
        for applet in APPLETS {
            symlink("busybox", directory.join("rootfs/bin").join(applet))?;
        }
        Ok(())
    };
    write().map_err(Error::io(what()))
}
