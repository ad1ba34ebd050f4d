//! Ids and names of offerings that are bundles.
//!
//! An id says where a bundle comes from and nothing about what it is at present, so it survives every change of the image, of
//! the registry's address and of what its author calls it. Plans are known by their name in their bundle.

use md5::Md5;
use sha2::Digest as _;

use super::{name as plain_name, uuid_from};
use crate::names;
use crate::registry::IdScheme;

/// The longest name of a bundle's offering.
pub const NAME_CHARS_MAX: usize = 51;
/// 32 bits of a hash, in hexadecimal digits: what keeps a few names apart that would be one.
const SUFFIX_CHARS: usize = 8;

/// Where a bundle comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'a> {
    /// Name of the Registry.
    pub registry: &'a str,
    /// The repository, with its organisation.
    pub repository: &'a str,
    /// The tag that is followed.
    pub track: &'a str,
    /// Whether it is the one that the registry follows in every repository.
    pub is_default_track: bool,
}

/// Id of the offering that a bundle is, which its author calls `name`.
///
/// The Automation Service Broker knew one tag per registry, so only that one has an id of its making.
pub fn service_id(scheme: IdScheme, origin: &Origin<'_>, name: &str) -> String {
    match scheme {
        IdScheme::AsbMd5 if origin.is_default_track => md5(&asb_name(origin.registry, name)),
        IdScheme::AsbMd5 | IdScheme::Uuid => {
            let parts = [origin.registry, origin.repository, origin.track];
            uuid_from("heddle.dev/bundle/", &parts)
        }
    }
}

/// Id of a plan of a bundle that comes from `registry` and is called `name` by its author. Where the offering's id was made
/// as the Automation Service Broker made them, the plan's is, too.
pub fn plan_id(service_id: &str, registry: &str, name: &str, plan: &str) -> String {
    let asb = asb_name(registry, name);
    if md5(&asb) == service_id {
        md5(&format!("{asb}-{plan}"))
    } else {
        uuid_from("heddle.dev/bundle-plan/", &[service_id, plan])
    }
}

/// The name under which a bundle is offered, unless another has it: registry, bundle and, where it is not the one of all,
/// tag. Too long a name ends in a hash.
pub fn name(origin: &Origin<'_>, name: &str) -> String {
    let mut whole = format!("{}-{name}", origin.registry);
    if !origin.is_default_track {
        whole = format!("{whole}-{}", origin.track);
    }
    let plain = plain_name(&whole);
    if plain.len() <= NAME_CHARS_MAX {
        plain
    } else {
        told_apart(&plain, &whole)
    }
}

/// A name that differs from `name` by a hash of `by`, and is no longer than names may be.
pub fn told_apart(name: &str, by: &str) -> String {
    let hash = names::hashed("", &[by]);
    let hash = hash.get(..=SUFFIX_CHARS).unwrap_or(&hash);
    // Names are of ASCII characters only.
    let room = NAME_CHARS_MAX - hash.len();
    let kept = name.get(..room).unwrap_or(name).trim_end_matches('-');
    format!("{kept}{hash}")
}

/// The version that a plan's implementation has for platforms, which take only semantic ones.
pub fn maintenance_version(version: &str) -> Option<String> {
    semver::Version::parse(version)
        .ok()
        .map(|known| known.to_string())
}

/// What people call the offering of a bundle that is called `title`.
pub fn display_name(origin: &Origin<'_>, title: &str) -> String {
    if origin.is_default_track {
        title.to_owned()
    } else {
        format!("{title} ({})", origin.track)
    }
}

/// What the Automation Service Broker called a bundle.
fn asb_name(registry: &str, name: &str) -> String {
    let whole = format!("{registry}-{name}");
    let dashed = whole.replace(['/', '.', ':'], "-");
    let cut = dashed
        .char_indices()
        .nth(NAME_CHARS_MAX)
        .map_or(dashed.as_str(), |(end, _)| &dashed[..end]);
    cut.strip_suffix('-').unwrap_or(cut).to_owned()
}

fn md5(text: &str) -> String {
    let digest = Md5::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin<'a>(registry: &'a str, repository: &'a str, track: &'a str) -> Origin<'a> {
        Origin {
            registry,
            repository,
            track,
            is_default_track: track == "latest",
        }
    }

    /// Ids that were seen in logs of that broker.
    #[test]
    fn ids_of_the_automation_service_broker_are_reproduced() {
        let id = |name| service_id(IdScheme::AsbMd5, &origin("dh", "any/thing", "latest"), name);
        assert_eq!(id("postgresql-apb"), "1dda1477cace09730bd8ed7a6505607e");
        assert_eq!(id("mediawiki-apb"), "f6c4486b7fb0cdac4b58e193607f7011");
        let plan = plan_id(&id("postgresql-apb"), "dh", "postgresql-apb", "dev");
        assert_eq!(plan, "7f4a5e35e4af2beb70076e72fab0b7ff");
        let named = service_id(
            IdScheme::AsbMd5,
            &origin("dh", "a", "v1.0"),
            "postgresql-apb",
        );
        assert_eq!(
            named.len(),
            36,
            "{named} is of a tag that broker did not know"
        );
    }

    #[test]
    fn no_two_bundles_share_an_id_and_no_two_plans() {
        let mut seen = std::collections::HashSet::new();
        let words = ["a", "b", "a-b", "b-c", "c", "a/b", "", "ab", "1", "a:1"];
        let long = "n".repeat(60);
        for registry in words.into_iter().chain([long.as_str()]) {
            for repository in words {
                for track in words {
                    let id = service_id(IdScheme::Uuid, &origin(registry, repository, track), "n");
                    assert!(seen.insert(id.clone()), "{registry} {repository} {track}");
                    assert_eq!(id.len(), 36);
                    assert_eq!(&id[14..15], "8", "the version says what the bits are");
                    for plan in ["c", "b-c"] {
                        assert!(seen.insert(plan_id(&id, registry, "n", plan)));
                    }
                }
            }
        }
    }

    #[test]
    fn an_id_stays_what_it_is_in_every_release() {
        let origin = origin("hub", "org/sqlite-apb", "latest");
        let id = service_id(IdScheme::Uuid, &origin, "sqlite");
        let plan = plan_id(&id, "hub", "sqlite", "small");
        assert_eq!(id, "3066c6c1-7e8c-8109-b95f-57df46b5face");
        assert_eq!(plan, "35499383-1f0c-814e-9e31-5e32ced5d972");
    }

    #[test]
    fn names_suit_a_command_line_are_short_and_tell_tracks_apart() {
        let name_of = |track, text| name(&origin("hub", "org/x", track), text);
        assert_eq!(name_of("latest", "Hello World_APB"), "hub-hello-world-apb");
        assert_eq!(name_of("v1.0", "hello"), "hub-hello-v1-0");
        let (one, other) = ("x".repeat(60), "x".repeat(61));
        let (one, other) = (name_of("latest", &one), name_of("latest", &other));
        assert_eq!((one.len(), other.len()), (NAME_CHARS_MAX, NAME_CHARS_MAX));
        assert_ne!(one, other);
        let apart = told_apart("hub-hello", "some id");
        assert!(
            apart.starts_with("hub-hello-") && apart.len() == 18,
            "{apart}"
        );
        assert_eq!(
            display_name(&origin("hub", "x", "v1.0"), "Hello"),
            "Hello (v1.0)"
        );
        assert_eq!(
            display_name(&origin("hub", "x", "latest"), "Hello"),
            "Hello"
        );
    }
}
