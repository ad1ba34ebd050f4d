//! What an author says about a bundle and about the image: the two documents of a directory.

#![expect(
    clippy::disallowed_methods,
    reason = "an author's files: no fault is injected there"
)]

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use super::Error;

/// Under these names a description is looked for, in this order.
pub(super) const DESCRIPTIONS: [&str; 3] = ["bundle.yaml", "bundle.yml", "apb.yml"];

pub(super) const SETTINGS: &str = "heddle-bundle.yaml";

/// The description's text and the name of its file.
pub(super) fn description(directory: &Path) -> Result<(&'static str, String), Error> {
    for name in DESCRIPTIONS {
        match fs::read_to_string(directory.join(name)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            text => return Ok((name, text.map_err(Error::io(format!("read {name}")))?)),
        }
    }
    let text = format!("{} has no bundle.yaml", directory.display());
    Err(Error::Invalid(text))
}

/// How the image is made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Settings {
    /// Files of this machine that go into the image.
    pub(super) include: Vec<Include>,
    /// The program and its first arguments.
    pub(super) entrypoint: Option<Vec<String>>,
}

/// A file or directory of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Include {
    /// Where it is; from the bundle's directory when it is no whole path. A link is followed here.
    pub(super) from: PathBuf,
    /// Where it goes in the image.
    pub(super) to: PathBuf,
}

impl Settings {
    pub(super) fn read(directory: &Path) -> Result<Self, Error> {
        let text = match fs::read_to_string(directory.join(SETTINGS)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            text => text.map_err(Error::io(format!("read {SETTINGS}")))?,
        };
        let settings: Self = serde_json::from_str(&text).map_err(|error| {
            let hint = "it is written in the part of YAML that is JSON";
            Error::Invalid(format!("{SETTINGS}: {error} ({hint})"))
        })?;
        for include in &settings.include {
            inside(&include.to)?;
        }
        Ok(settings)
    }
}

/// The parts of a path in the image, which cannot lead out of it.
pub(super) fn inside(path: &Path) -> Result<PathBuf, Error> {
    let mut inside = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => inside.push(part),
            Component::RootDir | Component::CurDir => {}
            _ => {
                let text = format!("{} leads out of the image", path.display());
                return Err(Error::Invalid(text));
            }
        }
    }
    if inside.as_os_str().is_empty() {
        let text = format!("{:?} names no place in the image", path.display());
        return Err(Error::Invalid(text));
    }
    Ok(inside)
}
