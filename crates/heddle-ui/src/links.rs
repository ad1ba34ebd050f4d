//! Where things are found: every address that a page writes is made here.

use form_urlencoded::byte_serialize;

/// One part of a path, whatever is in it.
pub(crate) fn part(text: &str) -> String {
    // A plus is a space in a query only.
    byte_serialize(text.as_bytes())
        .collect::<String>()
        .replace('+', "%20")
}

/// A path below the page, with the base before it.
#[derive(Clone, Debug)]
pub(crate) struct PageLinks {
    base: String,
}

impl PageLinks {
    pub(crate) fn new(base: &str) -> Self {
        let base = base.trim_end_matches('/');
        Self {
            base: base.to_owned(),
        }
    }

    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// `rest` is what follows `/ui/`.
    pub(crate) fn page(&self, rest: &str) -> String {
        format!("{}/ui/{rest}", self.base)
    }

    /// A path of this server outside of the page, such as a question.
    pub(crate) fn server(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    pub(crate) fn application(&self, name: &str, namespace: Option<&str>) -> String {
        let namespace = namespace.map(|namespace| format!("?ns={}", part(namespace)));
        let rest = format!(
            "applications/{}{}",
            part(name),
            namespace.unwrap_or_default()
        );
        self.page(&rest)
    }

    pub(crate) fn help(&self, code: &str) -> String {
        self.page(&format!("help/{}", part(code)))
    }

    pub(crate) fn trace(&self, id: &str, source: Option<&str>) -> String {
        let source = source.map(|source| format!("&source={}", part(source)));
        self.page(&format!(
            "trace?id={}{}",
            part(id),
            source.unwrap_or_default()
        ))
    }

    /// Where the events of a query are listed.
    pub(crate) fn events(&self, query: &str) -> String {
        self.page(&format!("events?q={}", part(query)))
    }

    /// Where the events of a query are listed that a number counts.
    pub(crate) fn counted_events(&self, query: &str, count: u64) -> String {
        format!("{}&of={count}", self.events(query))
    }

    /// How long the events of a query took, with a row for each trigger, application or type.
    pub(crate) fn delays(&self, by: &str, query: &str) -> String {
        let query = match query {
            "" => String::new(),
            query => format!("&q={}", part(query)),
        };
        self.page(&format!("delays?by={by}{query}"))
    }

    /// The event at a place of the log.
    pub(crate) fn place(&self, offset: u64) -> String {
        self.page(&format!("events/{offset}"))
    }

    pub(crate) fn trigger(&self, namespace: &str, name: &str) -> String {
        self.page(&format!("triggers/{}/{}", part(namespace), part(name)))
    }

    pub(crate) fn dead_letter(&self, name: &str) -> String {
        self.page(&format!("dead-letters/{}", part(name)))
    }

    pub(crate) fn instance(&self, namespace: &str, name: &str) -> String {
        self.page(&format!("instances/{}/{}", part(namespace), part(name)))
    }

    /// Where an object is shown, by the name that verdicts and hops give it: `broker/team-a/default`, `application/shop`.
    pub(crate) fn object(&self, object: &str) -> Option<String> {
        let mut parts = object.splitn(3, '/');
        let (kind, first, second) = (parts.next()?, parts.next()?, parts.next());
        let rest = match (kind, second) {
            ("application", None) => return Some(self.application(first, None)),
            ("trigger" | "subscriber", Some(name)) => {
                format!("triggers/{}/{}", part(first), part(name))
            }
            ("serviceinstance", Some(name)) => return Some(self.instance(first, name)),
            ("namespace", _) => return None,
            (kind, Some(name)) => format!("objects/{}/{}/{}", part(kind), part(first), part(name)),
            (kind, None) => format!("objects/{}/{}", part(kind), part(first)),
        };
        Some(self.page(&rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_addresses_and_stay_inside_of_them() {
        let links = PageLinks::new("/mesh/");
        let object = |name: &str| links.object(name).unwrap();
        assert_eq!(object("application/shop"), "/mesh/ui/applications/shop");
        assert_eq!(
            object("trigger/team-a/orders"),
            "/mesh/ui/triggers/team-a/orders"
        );
        assert_eq!(
            object("subscriber/team-a/orders"),
            "/mesh/ui/triggers/team-a/orders"
        );
        assert_eq!(
            object("broker/team-a/default"),
            "/mesh/ui/objects/broker/team-a/default"
        );
        assert_eq!(object("registry/main"), "/mesh/ui/objects/registry/main");
        assert_eq!(links.object("disk"), None);
        let hostile = links.trace("a b&source=x#?\"><", Some("/s"));
        assert_eq!(
            hostile,
            "/mesh/ui/trace?id=a%20b%26source%3Dx%23%3F%22%3E%3C&source=%2Fs"
        );
    }
}
