//! What an author should know before anybody else finds out.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use heddle_api::description::Description;

use super::settings::{DESCRIPTIONS, SETTINGS, Settings, description, inside};

/// Whether it can stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// No image can be made, or it could not be offered or run.
    Error,
    /// It works, and somebody will wonder.
    Warning,
}

/// One thing to know.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    pub severity: Severity,
    /// The file, from the bundle's directory.
    pub place: String,
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{severity}: {}: {}", self.place, self.message)
    }
}

/// Everything that can be said about a directory, errors first. Nothing when all is well.
pub fn lint(directory: &Path) -> Vec<Finding> {
    let mut findings = Findings(Vec::new());
    findings.of_description(directory);
    match Settings::read(directory) {
        Ok(settings) => findings.of_files(directory, &settings),
        Err(error) => findings.error(SETTINGS, error.to_string()),
    }
    findings.0.sort();
    findings.0
}

struct Findings(Vec<Finding>);

impl Findings {
    fn error(&mut self, place: &str, message: impl Into<String>) {
        self.add(Severity::Error, place, message.into());
    }

    fn warning(&mut self, place: &str, message: impl Into<String>) {
        self.add(Severity::Warning, place, message.into());
    }

    fn add(&mut self, severity: Severity, place: &str, message: String) {
        self.0.push(Finding {
            severity,
            place: place.to_owned(),
            message,
        });
    }

    fn of_description(&mut self, directory: &Path) {
        let (name, text) = match description(directory) {
            Ok(found) => found,
            Err(error) => return self.error(DESCRIPTIONS[0], error.to_string()),
        };
        let others = DESCRIPTIONS.iter().filter(|other| **other != name);
        for other in others.filter(|other| directory.join(other).exists()) {
            self.warning(other, format!("{name} is taken instead"));
        }
        match heddle_api::description::read(&text) {
            Ok((_, description)) => self.of_members(name, &description),
            Err(_) => {
                for why in heddle_api::description::faults(&text) {
                    self.error(name, why);
                }
            }
        }
    }

    fn of_members(&mut self, name: &str, description: &Description) {
        match description.version() {
            None => self.warning(
                name,
                "it has no bundleVersion: instances cannot be upgraded on purpose",
            ),
            Some(version) if semver::Version::parse(&version).is_err() => {
                let text = format!(
                    "bundleVersion {version} is no semantic version: platforms will not see it"
                );
                self.warning(name, text);
            }
            Some(_) => {}
        }
        if description.description.trim().is_empty() {
            self.warning(name, "it has no description");
        }
        for plan in &description.plans {
            if plan.description.trim().is_empty() {
                self.warning(name, format!("plan {} has no description", plan.name));
            }
        }
    }

    fn of_files(&mut self, directory: &Path, settings: &Settings) {
        if !directory.join("rootfs").is_dir() {
            self.error("rootfs", "there is no such directory");
        }
        for include in &settings.include {
            let from = directory.join(&include.from);
            if !from.exists() {
                self.error(SETTINGS, format!("{} does not exist here", from.display()));
            }
        }
        let entrypoint = settings.entrypoint.as_ref().and_then(|words| words.first());
        let entrypoint = entrypoint.map_or(super::ENTRYPOINT, String::as_str);
        self.of_entrypoint(directory, settings, entrypoint);
        for point in ["proc", "dev", "tmp", "data", "out", "run", "run/bundle"] {
            let at = directory.join("rootfs").join(point);
            if fs::symlink_metadata(&at).is_ok_and(|metadata| !metadata.is_dir()) {
                let place = format!("rootfs/{point}");
                self.error(&place, "the sandbox needs a directory here");
            }
        }
    }

    fn of_entrypoint(&mut self, directory: &Path, settings: &Settings, entrypoint: &str) {
        let Ok(relative) = inside(Path::new(entrypoint)) else {
            let text = format!("entrypoint {entrypoint:?} is no path in the image");
            return self.error(SETTINGS, text);
        };
        let mut included = settings.include.iter();
        let is_included =
            included.any(|include| inside(&include.to).is_ok_and(|to| relative.starts_with(to)));
        // One that is looked for in PATH is found out about when it runs.
        if is_included || !entrypoint.starts_with('/') {
            return;
        }
        let place = format!("rootfs/{}", relative.display());
        match fs::metadata(directory.join(&place)) {
            Err(_) => self.error(&place, "the program is missing"),
            Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => {
                self.error(&place, "the program cannot be executed: chmod +x");
            }
            Ok(_) => {}
        }
    }
}
