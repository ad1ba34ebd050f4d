//! Kinds of objects by the words that verdicts use for them, and where the resource API has them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use heddle_api::{ConditionSet, ResourceKind};

use crate::links::part;

/// What has to be known of a kind to ask for its objects.
#[derive(Clone, Debug)]
pub(crate) struct KindPath {
    pub(crate) kind: ResourceKind,
    pub(crate) plural: String,
    pub(crate) conditions: ConditionSet,
    group: String,
    version: String,
    pub(crate) namespaced: bool,
}

impl KindPath {
    /// All objects, of all namespaces.
    pub(crate) fn all(&self) -> String {
        format!("/apis/{}/{}/{}", self.group, self.version, self.plural)
    }

    /// All objects of one namespace.
    pub(crate) fn within(&self, namespace: &str) -> String {
        format!(
            "/apis/{}/{}/namespaces/{}/{}",
            self.group,
            self.version,
            part(namespace),
            self.plural
        )
    }

    /// One object; a kind without namespaces has no use for one.
    pub(crate) fn one(&self, namespace: Option<&str>, name: &str) -> String {
        let namespace = namespace.filter(|_| self.namespaced);
        let namespace = namespace.map(|namespace| format!("namespaces/{}/", part(namespace)));
        format!(
            "/apis/{}/{}/{}{}/{}",
            self.group,
            self.version,
            namespace.unwrap_or_default(),
            self.plural,
            part(name)
        )
    }

    /// As `heddle get` takes it.
    pub(crate) fn command(&self, namespace: Option<&str>, name: &str) -> String {
        let namespace = namespace.filter(|_| self.namespaced);
        let namespace = namespace.map(|namespace| format!(" -n {namespace}"));
        let plural = &self.plural;
        format!(
            "heddle get {plural}.{} {name}{} -o json",
            self.group,
            namespace.unwrap_or_default()
        )
    }
}

/// The kind that a word such as `trigger` or `httpsource` means.
pub(crate) fn kind(word: &str) -> Option<&'static KindPath> {
    static KINDS: OnceLock<BTreeMap<String, KindPath>> = OnceLock::new();
    let kinds = KINDS.get_or_init(|| {
        let path = |kind: &ResourceKind| {
            let info = kind.info();
            let spec = info.crd.spec;
            let version = spec.versions.iter().find(|version| version.storage);
            let path = KindPath {
                kind: *kind,
                plural: spec.names.plural,
                conditions: info.conditions,
                group: spec.group,
                version: version
                    .map(|version| version.name.clone())
                    .unwrap_or_default(),
                namespaced: spec.scope == "Namespaced",
            };
            (kind.name().to_lowercase(), path)
        };
        ResourceKind::ALL.iter().map(path).collect()
    });
    kinds.get(word)
}

/// The same by the type, where the word is known to be one.
pub(crate) fn of(kind: ResourceKind) -> &'static KindPath {
    let found = self::kind(&kind.name().to_lowercase());
    found.expect("every kind is in the table")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_path() {
        for kind in ResourceKind::ALL {
            let path = of(*kind);
            assert!(
                path.all().starts_with("/apis/") && !path.all().contains("//"),
                "{path:?}"
            );
        }
        let broker = kind("broker").unwrap();
        assert_eq!(
            broker.one(Some("team-a"), "default"),
            "/apis/eventing.knative.dev/v1/namespaces/team-a/brokers/default"
        );
        let application = kind("application").unwrap();
        assert_eq!(
            application.one(Some("ignored"), "shop"),
            "/apis/applicationconnector.kyma-project.io/v1alpha1/applications/shop"
        );
        assert!(kind("pod").is_none());
    }
}
