//! An entry of the catalogue, and how the kinds of them are made.

use crate::health::{HealthPlane, HealthStatus};

/// Who notices a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Detector {
    /// Conditions of objects, and whether their controllers are at work.
    Resources,
    /// Synthetic events on the real path.
    Heartbeat,
    /// The accounts of real events.
    Accounting,
    /// The disk, the store, the clock themselves.
    Dependency,
}

impl Detector {
    /// As it is shown.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Heartbeat => "heartbeat",
            Self::Accounting => "accounting",
            Self::Dependency => "dependency",
        }
    }

    /// The same in words.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Resources => {
                "the conditions of objects, and whether their controllers are at work"
            }
            Self::Heartbeat => "synthetic events on the real path",
            Self::Accounting => "the accounts of real events",
            Self::Dependency => "asking the disk, the store and the clock themselves",
        }
    }
}

/// The page that is written from this table.
pub const RUNBOOKS: &str = "docs/reference/health-codes.md";

/// One thing that can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthFault {
    /// The `reason` on the wire, one CamelCase word.
    pub code: &'static str,
    /// Where it is.
    pub plane: HealthPlane,
    /// What it makes of its plane.
    pub health: HealthStatus,
    /// Who notices.
    pub detector: Detector,
    /// The hop, where it is always the same.
    pub hop: Option<&'static str>,
    /// What is so when it is reported.
    pub meaning: &'static str,
    /// What people notice of it.
    pub impact: &'static str,
    /// What to do.
    pub remedy: &'static str,
    /// Commands that show more, with `APP`, `NS` and `NAME` to be filled in.
    pub diagnosis: &'static [&'static str],
}

impl HealthFault {
    /// Where it is explained, below the root of the documentation.
    #[must_use]
    pub fn runbook(&self) -> String {
        format!("{RUNBOOKS}#{}", self.code.to_lowercase())
    }

    /// What there is to know besides the meaning and the commands that show more, each with its label.
    #[must_use]
    pub fn facts(&self) -> [(&'static str, String); 4] {
        let hop = self.hop.map(|hop| format!(", at the hop {hop}"));
        let place = format!("the {} plane{}", self.plane.word(), hop.unwrap_or_default());
        [
            ("verdict", format!("{:?}, on {place}", self.health)),
            ("noticed", format!("by {}", self.detector.sentence())),
            ("impact", self.impact.to_owned()),
            ("remedy", self.remedy.to_owned()),
        ]
    }

    /// The meaning as it is said after a colon.
    #[must_use]
    pub fn said(&self) -> String {
        // Every meaning begins with an ordinary word; a test sees to it.
        let mut letters = self.meaning.trim_end_matches('.').chars();
        let first = letters.next().into_iter().flat_map(char::to_lowercase);
        first.chain(letters).collect()
    }
}

/// An object of the path is missing or not ready. What is particular to it are its hop and its words.
pub(super) const fn unready(
    code: &'static str,
    hop: Option<&'static str>,
    meaning: &'static str,
    remedy: &'static str,
    diagnosis: &'static [&'static str],
) -> HealthFault {
    HealthFault {
        code,
        plane: HealthPlane::Control,
        health: HealthStatus::Unhealthy,
        detector: Detector::Resources,
        hop,
        meaning,
        impact: "Events of the application do not get past this point, or will not after a restart.",
        remedy,
        diagnosis,
    }
}

/// Synthetic events stop at a hop.
pub(super) const fn stuck(
    code: &'static str,
    hop: Option<&'static str>,
    meaning: &'static str,
    remedy: &'static str,
) -> HealthFault {
    HealthFault {
        code,
        plane: HealthPlane::Data,
        health: HealthStatus::Unhealthy,
        detector: Detector::Heartbeat,
        hop,
        meaning,
        impact: "Events of this application do not arrive in this namespace. Those that were accepted are kept.",
        remedy,
        diagnosis: &[
            "heddle health APP -n NS",
            "heddle doctor",
            "heddle topology",
        ],
    }
}

/// Nobody outside can publish.
pub(super) const fn edge(
    code: &'static str,
    meaning: &'static str,
    remedy: &'static str,
) -> HealthFault {
    HealthFault {
        impact: "Publishers elsewhere cannot publish. What was accepted, and what is published on this machine, arrives.",
        diagnosis: &["heddle health", "heddle config show"],
        ..stuck(code, Some("edge"), meaning, remedy)
    }
}

/// Something about a subscriber, a filter or a publisher.
pub(super) const fn of_user(
    code: &'static str,
    health: HealthStatus,
    hop: Option<&'static str>,
    meaning: &'static str,
    impact: &'static str,
    remedy: &'static str,
    diagnosis: &'static [&'static str],
) -> HealthFault {
    HealthFault {
        code,
        plane: HealthPlane::User,
        health,
        detector: Detector::Accounting,
        hop,
        meaning,
        impact,
        remedy,
        diagnosis,
    }
}

/// Something that everything stands on.
pub(super) const fn beneath(
    code: &'static str,
    health: HealthStatus,
    meaning: &'static str,
    impact: &'static str,
    remedy: &'static str,
) -> HealthFault {
    HealthFault {
        code,
        plane: HealthPlane::Dependencies,
        health,
        detector: Detector::Dependency,
        hop: None,
        meaning,
        impact,
        remedy,
        diagnosis: &["heddle doctor", "df -h DATA_DIRECTORY"],
    }
}
