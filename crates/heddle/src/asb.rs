//! The configuration of the Automation Service Broker, read as Registries and Secrets.
//!
//! The file is taken as it is, or not at all: what cannot mean anything is refused with its place, and everything that has
//! no meaning here is dropped with a warning that names what stands in for it. Pure: text in, objects out. Who creates the
//! objects is left to the commands. All of it is behind the feature `import-asb`; without, `absent.rs` stands in its place.

mod auth;
mod dropped;
mod node;
mod tags;

use std::collections::BTreeSet;

use heddle_api::Registry;
use heddle_api::registry::{RegistryType, Tags};
use heddle_bundles::registries::check_pattern;

use self::auth::Auth;
use self::node::{Node, Shape};
use crate::failure::Failure;
use crate::registries::{
    RegistryObjects, TYPES, Warning, blank, is_name, needs_url, offers_nothing, registry_type,
};

/// Reads a configuration file, or the `registry:` block of one.
pub(crate) fn import(text: &str) -> Result<RegistryObjects, Failure> {
    let root = node::parse(text)?;
    let mut import = Import::default();
    let mut blocks = None;
    for (key, value) in root.entries("the file")? {
        match key.as_str() {
            "registry" => blocks = Some(value),
            "broker" => import.broker(value)?,
            section => import.section(section, value),
        }
    }
    let Some(blocks) = blocks else {
        let text = "there is no `registry:` in it, so there is nothing to import";
        return Err(root.fail(text));
    };
    for (index, block) in blocks.items("registry")?.iter().enumerate() {
        import.registry(&format!("registry[{index}]"), block)?;
    }
    import.done.warnings.sort_by_key(|warning| warning.line);
    Ok(import.done)
}

#[derive(Default)]
struct Import {
    done: RegistryObjects,
    names: BTreeSet<String>,
    /// Applies to all registries alike.
    refresh_seconds: Option<i32>,
}

impl Import {
    fn warn(&mut self, node: &Node, key: &str, text: impl Into<String>) {
        self.done.warnings.push(Warning {
            line: node.line(),
            key: key.to_owned(),
            text: text.into(),
        });
    }

    /// A section without a meaning of its own: each of its keys is named.
    fn section(&mut self, section: &str, value: &Node) {
        let entries = match &value.shape {
            Shape::Map(entries) => entries,
            Shape::Nothing => return,
            _ => return self.warn(value, section, dropped::text(section)),
        };
        for (key, value) in entries {
            let key = format!("{section}.{key}");
            let text = dropped::text(&key);
            self.warn(value, &key, text);
        }
    }

    fn broker(&mut self, value: &Node) -> Result<(), Failure> {
        for (key, value) in value.entries("broker")? {
            let key = format!("broker.{key}");
            if key != "broker.refresh_interval" {
                let text = dropped::text(&key);
                self.warn(value, &key, text);
                continue;
            }
            let text = value.text(&key)?;
            let Some(seconds) = seconds(&text) else {
                let text = format!("{key}: `{text}` is no time; write it as 600s or 10m");
                return Err(value.fail(&text));
            };
            self.refresh_seconds = Some(seconds);
            let text = format!("is replaced by refreshIntervalSeconds: {seconds} of each registry");
            self.warn(value, &key, text);
        }
        Ok(())
    }

    fn registry(&mut self, path: &str, block: &Node) -> Result<(), Failure> {
        let mut auth = Auth::default();
        let (mut name, mut type_, mut tag, mut runner) = (None, None, None, None);
        let mut spec = blank(RegistryType::ApiV2);
        for (key, value) in block.entries(path)? {
            let at = format!("{path}.{key}");
            match key.as_str() {
                "name" => name = Some((value, value.text(&at)?)),
                "type" => type_ = Some((value, value.text(&at)?)),
                "url" => spec.url = some(value.text(&at)?),
                "org" => spec.org = some(value.text(&at)?),
                "tag" => tag = Some(value),
                "runner" => runner = some(value.text(&at)?).map(|text| (value, text)),
                "images" => spec.images = value.texts(&at)?,
                "white_list" => spec.white_list = patterns(value, &at)?,
                "black_list" => spec.black_list = patterns(value, &at)?,
                "skip_verify_tls" => spec.skip_verify_tls = value.flag(&at)?,
                "fail_on_error" => spec.fail_on_error = value.flag(&at)?,
                "user" | "pass" | "token" | "auth_type" | "auth_name" => {
                    auth.take(key, value, &at)?;
                }
                _ => {
                    let text = dropped::text(&format!("registry.{key}"));
                    self.warn(value, &at, text);
                }
            }
        }
        let Some((name_node, name)) = name else {
            return Err(block.fail(&format!("{path} has no name")));
        };
        self.check_name(name_node, &name)?;
        let Some((type_node, word)) = type_ else {
            return Err(block.fail(&format!("{path}: `{name}` has no type")));
        };
        let Some(type_) = self.type_of(type_node, path, &name, &word)? else {
            return Ok(());
        };
        spec.type_ = type_;
        if needs_url(type_) && spec.url.is_none() {
            return Err(block.fail(&format!("{path}: `{name}` has no url")));
        }
        match runner {
            Some((_, text)) if type_ == RegistryType::Helm => spec.runner = Some(text),
            Some((node, _)) => {
                let key = format!("{path}.runner");
                self.warn(node, &key, dropped::text("registry.runner"));
            }
            None if type_ == RegistryType::Helm => {
                return Err(block.fail(&format!("{path}: `{name}` has no runner")));
            }
            None => {}
        }
        let at = format!("{path}.tag");
        spec.tags = match tag {
            Some(node) => tags::read(node, &at, &mut self.done.warnings)?,
            None => Tags::default(),
        };
        if let Some(why) = offers_nothing(&spec) {
            self.warn(block, path, format!("has no white_list: {why}"));
        }
        if let Some(seconds) = self.refresh_seconds {
            spec.refresh_interval_seconds = seconds;
        }
        let secret = auth.settle(&name, path, &mut spec, &mut self.done.warnings)?;
        self.done.secrets.extend(secret);
        self.done.registries.push(Registry::new(&name, spec));
        Ok(())
    }

    /// A name becomes the name of an object, and ids of offerings are made from it.
    fn check_name(&mut self, node: &Node, name: &str) -> Result<(), Failure> {
        if !is_name(name) {
            let text = format!(
                "`{name}` is no name for a registry: use small letters, digits, `-` and `.`"
            );
            return Err(node.fail(&text));
        }
        if !self.names.insert(name.to_owned()) {
            return Err(node.fail(&format!("there are two registries called `{name}`")));
        }
        Ok(())
    }

    /// The type that a word of the old broker means; `None` leaves the registry out.
    fn type_of(
        &mut self,
        node: &Node,
        path: &str,
        name: &str,
        word: &str,
    ) -> Result<Option<RegistryType>, Failure> {
        let key = format!("{path}.type");
        match word {
            "openshift" | "partner_rhcc" | "registry_proxy" => {
                let text = format!("{word} is replaced by apiv2, which speaks to all of these");
                self.warn(node, &key, text);
                Ok(Some(RegistryType::ApiV2))
            }
            "mock" => {
                let text = format!(
                    "mock is dropped, and registry `{name}` with it: put images into a directory in the OCI layout and \
                     `heddle registry add {name} --type oci-layout --url DIRECTORY --allow '.*'`"
                );
                self.warn(node, &key, text);
                Ok(None)
            }
            "local_openshift" => Err(node.fail(
                "local_openshift reads ImageStreams of an OpenShift cluster, which heddle does not know; use type apiv2 \
                 with the address of the cluster's registry",
            )),
            "galaxy" => Err(node.fail(
                "galaxy holds roles without an image, which heddle cannot run; build bundles of them and use type apiv2",
            )),
            word => registry_type(word).map(Some).ok_or_else(|| {
                let known = TYPES.join(", ");
                node.fail(&format!("`{word}` is no type of registry; known are {known}"))
            }),
        }
    }
}

/// A list of patterns, each of which can be used as it stands.
fn patterns(node: &Node, at: &str) -> Result<Vec<String>, Failure> {
    for (index, item) in node.items(at)?.iter().enumerate() {
        let at = format!("{at}[{index}]");
        let text = item.filled_text(&at)?;
        check_pattern(&text)
            .map_err(|why| item.fail(&format!("{at}: `{text}` is no regular expression: {why}")))?;
    }
    node.texts(at)
}

fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// `600s`, `10m`, `1h30m`: whole seconds, at least one.
fn seconds(text: &str) -> Option<i32> {
    let mut rest = text.trim();
    let mut total: i32 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: i32 = rest[..digits].parse().ok()?;
        let unit = match rest[digits..].chars().next()? {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            _ => return None,
        };
        total = total.checked_add(number.checked_mul(unit)?)?;
        rest = &rest[digits + 1..];
    }
    (total > 0).then_some(total)
}

#[cfg(test)]
mod tests;
