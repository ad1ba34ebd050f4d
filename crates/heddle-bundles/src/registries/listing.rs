//! Which repositories a registry has: page by page, complete or not.
//!
//! The protocol has a catalog, which the large public registries do not serve; they have listings of their own. A listing
//! is complete when its last page was read. A page that cannot be read makes it incomplete, never shorter.

use heddle_api::evidence::{Credentials, Trouble};
use http::Method;
use serde::Deserialize;

use super::address::{Address, is_repository};
use super::ask::{Failure, RegistryRequest, RegistryResponse};
use super::client::Client;
use super::evidence;
use super::source::Listing;

/// Bytes of one page.
const PAGE_BYTES_MAX: u64 = 4 << 20;
/// Pages of one listing. More is not a registry of bundles.
const PAGES_MAX: usize = 1000;
/// Tags on one page, and pages of one repository.
const TAGS_PAGE: usize = 1000;
const TAGS_PAGES_MAX: usize = 20;
/// What a token has to allow.
const CATALOG_SCOPE: &str = "registry:catalog:*";

/// Whose listing it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Catalog,
    DockerHub,
    Quay,
    Rhcc,
}

/// How to list.
#[derive(Debug)]
pub(super) struct Lister {
    pub(super) kind: Kind,
    pub(super) org: Option<String>,
    /// Names on one page.
    pub(super) page: usize,
    /// Where the listing is, if not at the registry itself.
    pub(super) elsewhere: Option<(Client, Address)>,
}

/// One page.
#[derive(Debug, Default, PartialEq, Eq)]
struct Page {
    names: Vec<String>,
    next: Option<Next>,
}

/// Where the next page is.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Link(String),
    After(String),
    Number(u64),
    Token(String),
}

impl Lister {
    pub(super) fn requests(&self) -> u64 {
        self.elsewhere
            .as_ref()
            .map_or(0, |(client, _)| client.requests())
    }

    pub(super) async fn list(&self, client: &Client, base: &Address) -> Listing {
        let (client, base) = match &self.elsewhere {
            Some((client, base)) => (client, base),
            None => (client, base),
        };
        let mut listing = Listing {
            exists: true,
            ..Listing::default()
        };
        let trouble = match self.pages(client, base, &mut listing).await {
            Ok(()) => return listing,
            Err(trouble) => trouble,
        };
        listing.trouble = Some(trouble);
        listing
    }

    async fn pages(
        &self,
        client: &Client,
        base: &Address,
        listing: &mut Listing,
    ) -> Result<(), Trouble> {
        let first = self.first(base);
        let mut address = first.clone();
        for number in 1..=PAGES_MAX {
            let page = self.page(client, &address, &first).await;
            let page = page.map_err(|failure| self.trouble(failure, number, listing))?;
            let Some(page) = page else {
                listing.exists = false;
                return Ok(());
            };
            let before = listing.repositories.len();
            let wanted = page.names.into_iter().filter(|name| is_repository(name));
            listing.repositories.extend(wanted);
            let Some(next) = page.next else {
                return Ok(());
            };
            if listing.repositories.len() == before {
                return Err(Trouble::ListingIncomplete(
                    "the listing does not come to an end".to_owned(),
                ));
            }
            address = self.next(&first, &address, next).map_err(|why| {
                Trouble::ListingIncomplete(format!("page {} of the listing: {why}", number + 1))
            })?;
        }
        Err(Trouble::ListingIncomplete(format!(
            "the listing has more than {PAGES_MAX} pages"
        )))
    }

    fn trouble(&self, failure: Stopped, number: usize, listing: &mut Listing) -> Trouble {
        let text = format!("page {number} of the listing: {}", failure.why());
        match failure {
            Stopped::Refused(401 | 403, _) => Trouble::AuthenticationFailed(text),
            _ if number > 1 => Trouble::ListingIncomplete(text),
            Stopped::Failed(Failure::Silent(_)) => {
                listing.silent = true;
                Trouble::Unreachable(text)
            }
            _ => Trouble::Unreachable(text),
        }
    }

    fn first(&self, base: &Address) -> Address {
        let size = self.page.to_string();
        let org = self.org.as_deref().unwrap_or_default();
        match self.kind {
            Kind::Catalog => base.below("/v2/_catalog").with("n", &size),
            Kind::DockerHub => base
                .below(&format!("/v2/repositories/{org}/"))
                .with("page_size", &size),
            Kind::Quay => base
                .below("/api/v1/repository")
                .with("namespace", org)
                .with("public", "true"),
            Kind::Rhcc => base.below("/v1/search").with("q", "\"*-apb\""),
        }
    }

    fn next(&self, first: &Address, here: &Address, next: Next) -> Result<Address, String> {
        Ok(match next {
            Next::Link(link) => {
                let next = here.follow(&link)?;
                // A listing that goes on elsewhere would take the registry's secrets there.
                if next.origin != first.origin {
                    return Err(format!("it is on another server: {next}"));
                }
                next
            }
            Next::After(last) => first.clone().with("last", &last),
            Next::Number(number) => first.clone().with("page", &number.to_string()),
            Next::Token(token) => first.clone().with("next_page", &token),
        })
    }

    /// One page; `None` if there is no such listing.
    async fn page(
        &self,
        client: &Client,
        address: &Address,
        first: &Address,
    ) -> Result<Option<Page>, Stopped> {
        let scope = if self.kind == Kind::Catalog {
            CATALOG_SCOPE
        } else {
            ""
        };
        let answer = ask_for_page(client, address, scope).await?;
        match answer.status.as_u16() {
            200 => {}
            404 | 405 | 501 if self.kind == Kind::Catalog && address == first => return Ok(None),
            status => {
                let errors = evidence::errors(&answer.body);
                let unsupported = errors.iter().any(|error| error.code == "UNSUPPORTED");
                if self.kind == Kind::Catalog && unsupported && address == first {
                    return Ok(None);
                }
                let said = errors
                    .first()
                    .map(|error| format!("{}: {}", error.code, error.message));
                return Err(Stopped::Refused(status, said));
            }
        }
        let page = self.read(&answer);
        page.map(Some)
            .map_err(|why| Stopped::Failed(Failure::Garbled(why)))
    }

    /// Takes a page apart.
    fn read(&self, answer: &RegistryResponse) -> Result<Page, String> {
        match self.kind {
            Kind::Catalog => read_catalog(answer, self.page),
            Kind::DockerHub => read_hub(&answer.body, self.org.as_deref()),
            Kind::Quay => read_quay(&answer.body),
            Kind::Rhcc => read_rhcc(&answer.body),
        }
    }
}

/// Whatever the answer says, it is no longer than a page may be.
async fn ask_for_page(
    client: &Client,
    address: &Address,
    scope: &str,
) -> Result<RegistryResponse, Stopped> {
    let mut ask = RegistryRequest::get(address.clone(), scope);
    ask.bytes_max = PAGE_BYTES_MAX;
    ask.accept = Some("application/json");
    client.ask(&ask).await.map_err(Stopped::Failed)
}

/// All tags of a repository. One that the registry does not know has none.
pub(super) async fn tags(
    client: &Client,
    base: &Address,
    repository: &str,
    scope: &str,
) -> Result<Vec<String>, Stopped> {
    #[derive(Deserialize)]
    struct Tags {
        tags: Option<Vec<String>>,
    }
    let garbled = |why: String| Stopped::Failed(Failure::Garbled(why));
    let first = base.below(&format!("/v2/{repository}/tags/list"));
    let mut address = first.clone().with("n", &TAGS_PAGE.to_string());
    let mut found = Vec::new();
    for _ in 0..TAGS_PAGES_MAX {
        let answer = ask_for_page(client, &address, scope).await?;
        match answer.status.as_u16() {
            200 => {}
            404 => return Ok(found),
            status => return Err(Stopped::Refused(status, None)),
        }
        let page: Tags = json(&answer.body).map_err(garbled)?;
        found.extend(page.tags.unwrap_or_default());
        let Some(link) = answer.header("link").and_then(next_link) else {
            return Ok(found);
        };
        address = address.follow(&link).map_err(garbled)?;
        if address.origin != first.origin {
            return Err(garbled(format!("it goes on on another server: {address}")));
        }
    }
    Err(garbled(format!(
        "there are more than {TAGS_PAGES_MAX} pages of tags"
    )))
}

/// Why there is no next page.
pub(super) enum Stopped {
    Refused(u16, Option<String>),
    Failed(Failure),
}

impl Stopped {
    pub(super) fn why(&self) -> String {
        match self {
            Self::Refused(status, Some(said)) => format!("the registry answered {status} {said}"),
            Self::Refused(status, None) => format!("the registry answered {status}"),
            Self::Failed(failure) => failure.to_string(),
        }
    }
}

fn json<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(body).map_err(|error| format!("the page cannot be read: {error}"))
}

fn read_catalog(answer: &RegistryResponse, size: usize) -> Result<Page, String> {
    #[derive(Deserialize)]
    struct Catalog {
        repositories: Option<Vec<String>>,
    }
    let catalog: Catalog = json(&answer.body)?;
    let names = catalog.repositories.unwrap_or_default();
    let link = answer.header("link").and_then(next_link).map(Next::Link);
    // A server that knows no links gives full pages until the last.
    let full = || {
        names
            .last()
            .filter(|_| names.len() >= size)
            .cloned()
            .map(Next::After)
    };
    let next = link.or_else(full);
    Ok(Page { names, next })
}

/// The target of `Link: <…>; rel="next"`.
fn next_link(header: &str) -> Option<String> {
    header.split(',').find_map(|link| {
        let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = parameters.split(';').any(|it| {
            let (name, value) = it.split_once('=').unwrap_or_default();
            name.trim().eq_ignore_ascii_case("rel")
                && value.trim().trim_matches('"').eq_ignore_ascii_case("next")
        });
        is_next.then(|| target.to_owned())
    })
}

fn read_hub(body: &[u8], org: Option<&str>) -> Result<Page, String> {
    #[derive(Deserialize)]
    struct Hub {
        next: Option<String>,
        results: Vec<Repository>,
    }
    #[derive(Deserialize)]
    struct Repository {
        name: String,
        namespace: Option<String>,
    }
    let hub: Hub = json(body)?;
    let name = |it: Repository| {
        let namespace = it.namespace.or_else(|| org.map(str::to_owned));
        format!("{}/{}", namespace.unwrap_or_default(), it.name)
    };
    Ok(Page {
        names: hub.results.into_iter().map(name).collect(),
        next: hub.next.filter(|next| !next.is_empty()).map(Next::Link),
    })
}

fn read_quay(body: &[u8]) -> Result<Page, String> {
    #[derive(Deserialize)]
    struct Quay {
        repositories: Vec<Repository>,
        next_page: Option<String>,
    }
    #[derive(Deserialize)]
    struct Repository {
        namespace: String,
        name: String,
    }
    let quay: Quay = json(body)?;
    let name = |it: Repository| format!("{}/{}", it.namespace, it.name);
    Ok(Page {
        names: quay.repositories.into_iter().map(name).collect(),
        next: quay.next_page.map(Next::Token),
    })
}

fn read_rhcc(body: &[u8]) -> Result<Page, String> {
    #[derive(Deserialize)]
    struct Search {
        #[serde(default)]
        num_pages: u64,
        #[serde(default)]
        page: u64,
        results: Vec<Repository>,
    }
    #[derive(Deserialize)]
    struct Repository {
        name: String,
    }
    let search: Search = json(body)?;
    let next =
        (search.page.max(1) < search.num_pages).then(|| Next::Number(search.page.max(1) + 1));
    Ok(Page {
        names: search.results.into_iter().map(|it| it.name).collect(),
        next,
    })
}

/// Docker Hub's listing wants a session; the name and password of the registry open one.
pub(super) async fn open_hub(
    client: &Client,
    base: &Address,
    credentials: &Credentials,
) -> Result<Credentials, Failure> {
    let Credentials::Basic { username, password } = credentials else {
        return Ok(credentials.clone());
    };
    #[derive(Deserialize)]
    struct Session {
        token: String,
    }
    let mut ask = RegistryRequest::new(Method::POST, base.below("/v2/users/login"), "");
    ask.content_type = Some("application/json".to_owned());
    ask.body = serde_json::json!({"username": username, "password": password})
        .to_string()
        .into();
    let answer = client.ask(&ask).await?;
    let session: Result<Session, _> = serde_json::from_slice(&answer.body);
    match session {
        Ok(session) if answer.status.is_success() => Ok(Credentials::Token(session.token)),
        _ => Err(Failure::Garbled(format!(
            "the login was answered with {}",
            answer.status.as_u16()
        ))),
    }
}

#[cfg(test)]
mod tests;
