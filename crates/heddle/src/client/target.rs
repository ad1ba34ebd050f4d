//! Which objects a command line means: `channel shop`, `channel/shop trigger/orders`, `ch,tr`.
//!
//! Pure: words in, resources and names out. Whether the objects exist is the server's to say.

use std::fmt;
use std::str::FromStr;

use super::catalog::{Catalog, Resource};
use crate::failure::Failure;

/// One resource and the names asked for; none means all.
#[derive(Debug, PartialEq)]
pub(crate) struct Target<'a> {
    pub(crate) resource: &'a Resource,
    pub(crate) names: Vec<String>,
}

/// Reads the positional words of `get` and `delete`.
pub(crate) fn parse<'a>(
    catalog: &'a Catalog,
    words: &[String],
) -> Result<Vec<Target<'a>>, Failure> {
    let Some((first, rest)) = words.split_first() else {
        return Err(Failure::Usage(
            "name a resource, for example `applications` or `channel/shop`".to_owned(),
        ));
    };
    if words.iter().any(|word| word.contains('/')) {
        return parse_pairs(catalog, words);
    }
    for name in rest {
        check_name(name)?;
    }
    let mut targets: Vec<Target<'a>> = Vec::new();
    for word in first.split(',').filter(|word| !word.is_empty()) {
        for resource in catalog.resolve(word)? {
            if !targets.iter().any(|target| target.resource == resource) {
                targets.push(Target {
                    resource,
                    names: rest.to_vec(),
                });
            }
        }
    }
    Ok(targets)
}

/// `kind/name` words; the names of one resource are gathered so that they share a table.
fn parse_pairs<'a>(catalog: &'a Catalog, words: &[String]) -> Result<Vec<Target<'a>>, Failure> {
    let mut targets: Vec<Target<'a>> = Vec::new();
    for word in words {
        let Some((kind, name)) = word.split_once('/') else {
            return Err(Failure::Usage(format!(
                "`{word}`: either every word is kind/name or none is"
            )));
        };
        check_name(name)?;
        let resolved = catalog.resolve(kind)?;
        let [resource] = resolved.as_slice() else {
            return Err(Failure::Usage(format!(
                "`{kind}` means several resources; name one of them"
            )));
        };
        match targets
            .iter_mut()
            .find(|target| target.resource == *resource)
        {
            Some(target) => target.names.push(name.to_owned()),
            None => targets.push(Target {
                resource,
                names: vec![name.to_owned()],
            }),
        }
    }
    Ok(targets)
}

/// `NAMESPACE/NAME`, as the options for brokers, channels and triggers take it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Qualified {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl FromStr for Qualified {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let Some((namespace, name)) = text.split_once('/') else {
            return Err(Failure::Usage(format!(
                "`{text}` names no namespace; write NAMESPACE/NAME"
            )));
        };
        check_name(namespace)?;
        check_name(name)?;
        Ok(Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        })
    }
}

impl fmt::Display for Qualified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A name becomes a path segment of a URL: what could leave the segment is no name.
pub(crate) fn check_name(name: &str) -> Result<(), Failure> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':' | '_');
    if name.is_empty() || matches!(name, "." | "..") || !name.chars().all(fits) {
        return Err(Failure::Usage(format!(
            "`{name}` is no object name: use letters, digits, `-` and `.`"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::catalog::tests::sample;

    fn check(words: &str, expected: &str) {
        let catalog = sample();
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let text = match parse(&catalog, &words) {
            Ok(targets) => {
                let parts: Vec<String> = targets
                    .iter()
                    .map(|t| format!("{}[{}]", t.resource.api.plural, t.names.join(" ")))
                    .collect();
                parts.join(" ")
            }
            Err(failure) => failure.to_string(),
        };
        assert_eq!(text, expected, "for {words:?}");
    }

    #[test]
    fn words_become_resources_and_names() {
        check("channels", "channels[]");
        check("ch shop crm", "channels[shop crm]");
        check("ch,triggers", "channels[] triggers[]");
        check("ch,triggers,ch x", "channels[x] triggers[x]");
        check(
            "ch/shop trigger/a channel/crm",
            "channels[shop crm] triggers[a]",
        );
        check("knative", "channels[] subscriptions[] triggers[]");
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_remedy() {
        check(
            "",
            "name a resource, for example `applications` or `channel/shop`",
        );
        check(
            "ch/shop trigger",
            "`trigger`: either every word is kind/name or none is",
        );
        check(
            "knative/shop",
            "`knative` means several resources; name one of them",
        );
        check(
            "ch ..",
            "`..` is no object name: use letters, digits, `-` and `.`",
        );
        check(
            "ch a?b",
            "`a?b` is no object name: use letters, digits, `-` and `.`",
        );
        check(
            "ch/a/b",
            "`a/b` is no object name: use letters, digits, `-` and `.`",
        );
    }

    #[test]
    fn a_qualified_name_has_exactly_two_parts() {
        let read = |text: &str| text.parse::<Qualified>().map(|name| name.to_string());
        assert_eq!(read("team-a/orders").unwrap(), "team-a/orders");
        assert_eq!(
            read("orders").unwrap_err().to_string(),
            "`orders` names no namespace; write NAMESPACE/NAME"
        );
        for wrong in ["a/b/c", "/b", "a/", "a/.."] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
