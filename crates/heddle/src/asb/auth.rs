//! Credentials of a registry: out of the file, into a Secret that the Registry names.

use std::collections::BTreeMap;

use heddle_api::registry::RegistrySpec;
use heddle_api::well_known::SYSTEM_NAMESPACE;
use k8s_openapi::api::core::v1::Secret;

use super::node::Node;
use crate::failure::Failure;
use crate::registries::{Warning, secret, secret_name};

/// The key and place of credentials, and what goes into the Secret.
type Given<'a> = (&'static str, &'a Node, BTreeMap<&'static str, String>);

/// What a block says about credentials.
#[derive(Default)]
pub(super) struct Auth<'a> {
    given: BTreeMap<&'static str, (&'a Node, String)>,
}

impl<'a> Auth<'a> {
    /// Takes one of the keys about credentials.
    pub(super) fn take(&mut self, key: &str, node: &'a Node, at: &str) -> Result<(), Failure> {
        let known = ["user", "pass", "token", "auth_type", "auth_name"];
        let text = node.text(at)?;
        if let Some(key) = known.into_iter().find(|known| *known == key)
            && !text.is_empty()
        {
            self.given.insert(key, (node, text));
        }
        Ok(())
    }

    /// Names the Secret in the Registry, and makes it where the file holds what belongs into it.
    pub(super) fn settle(
        mut self,
        name: &str,
        path: &str,
        spec: &mut RegistrySpec,
        warnings: &mut Vec<Warning>,
    ) -> Result<Option<Secret>, Failure> {
        let mut warn = |node: &Node, key: &str, text: String| {
            warnings.push(Warning {
                line: node.line(),
                key: format!("{path}.{key}"),
                text,
            });
        };
        let method = self.given.remove("auth_type");
        let reference = self.given.remove("auth_name");
        let own = secret_name(name);
        match method.as_ref().map(|(node, word)| (*node, word.as_str())) {
            Some((node, word @ ("secret" | "file"))) => {
                let Some((_, from)) = reference else {
                    let text =
                        format!("{path}.auth_type is {word}, so {path}.auth_name must say which");
                    return Err(node.fail(&text));
                };
                let (target, text) = if word == "secret" {
                    let text = format!(
                        "is replaced by authSecretName; copy Secret `{from}` into namespace {SYSTEM_NAMESPACE}"
                    );
                    (from, text)
                } else {
                    let text = format!(
                        "is replaced by authSecretName: put what {from} holds into Secret `{own}` of namespace \
                         {SYSTEM_NAMESPACE}, as `username` and `password`"
                    );
                    (own, text)
                };
                warn(node, "auth_type", text);
                for (key, (node, _)) in &self.given {
                    let text = format!("is dropped: auth_type {word} says where credentials are");
                    warn(node, key, text);
                }
                spec.auth_secret_name = Some(target);
                return Ok(None);
            }
            None | Some((_, "config")) => {}
            Some((node, word)) => {
                let text = format!(
                    "{path}.auth_type: `{word}` is unknown; known are secret, file and config"
                );
                return Err(node.fail(&text));
            }
        }
        let Some((key, node, data)) = self.data(path, &mut warn)? else {
            return Ok(None);
        };
        let text = format!("is replaced by Secret `{own}` of namespace {SYSTEM_NAMESPACE}");
        warn(node, key, text);
        spec.auth_secret_name = Some(own);
        Ok(Some(secret(name, data)))
    }

    /// The credentials in the file itself. A token says more than a user.
    fn data(
        &mut self,
        path: &str,
        warn: &mut impl FnMut(&Node, &str, String),
    ) -> Result<Option<Given<'a>>, Failure> {
        let (user, pass) = (self.given.remove("user"), self.given.remove("pass"));
        if let Some((node, token)) = self.given.remove("token") {
            for (key, given) in [("user", &user), ("pass", &pass)] {
                if let Some((node, _)) = given {
                    warn(node, key, "is dropped: the token is used".to_owned());
                }
            }
            return Ok(Some(("token", node, BTreeMap::from([("token", token)]))));
        }
        match (user, pass) {
            (Some((node, user)), Some((_, pass))) => {
                let data = BTreeMap::from([("username", user), ("password", pass)]);
                Ok(Some(("user", node, data)))
            }
            (Some((node, _)), None) => Err(node.fail(&format!("{path} has a user, but no pass"))),
            (None, Some((node, _))) => Err(node.fail(&format!("{path} has a pass, but no user"))),
            (None, None) => Ok(None),
        }
    }
}
