//! Objects of an old mesh, read from a Kubernetes API: the embedded one, or another cluster's.
//!
//! Which kinds an old mesh may have been declared with is a table; what is not served is not there. Of each kind the newest
//! version is read that the API serves. Nothing is ever written: this knows of no verb but `list`.

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Client, Error as KubeError};
use serde_json::Value;

use crate::origin::{Answer, Error, OriginObjects};

/// How many objects are asked for at once, and how many an old mesh may have.
const PAGE: u32 = 500;
const OBJECTS_MAX: usize = 100_000;
/// How often a list is begun anew that took too long to be read.
const ATTEMPTS: usize = 3;

/// A kind of an old mesh.
struct OldKind {
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    /// Newest first.
    versions: &'static [&'static str],
}

const KNATIVE: &[&str] = &["v1", "v1beta1", "v1alpha1"];

const fn old(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    versions: &'static [&'static str],
) -> OldKind {
    OldKind {
        group,
        kind,
        plural,
        versions,
    }
}

const KINDS: &[OldKind] = &[
    // Two meshes of Kyma, years apart, had Subscriptions under the same name.
    old(
        "eventing.kyma-project.io",
        "Subscription",
        "subscriptions",
        &["v1alpha2", "v1alpha1"],
    ),
    old(
        "applicationconnector.kyma-project.io",
        "Application",
        "applications",
        &["v1alpha1"],
    ),
    old(
        "applicationconnector.kyma-project.io",
        "ApplicationMapping",
        "applicationmappings",
        &["v1alpha1"],
    ),
    old(
        "applicationconnector.kyma-project.io",
        "EventActivation",
        "eventactivations",
        &["v1alpha1"],
    ),
    old(
        "servicecatalog.k8s.io",
        "ServiceInstance",
        "serviceinstances",
        &["v1beta1"],
    ),
    old("messaging.knative.dev", "Channel", "channels", KNATIVE),
    old(
        "messaging.knative.dev",
        "Subscription",
        "subscriptions",
        KNATIVE,
    ),
    old("eventing.knative.dev", "Broker", "brokers", KNATIVE),
    old("eventing.knative.dev", "Trigger", "triggers", KNATIVE),
];

/// A Kubernetes API, in all namespaces that the client may read.
#[derive(Clone)]
pub struct Kubernetes {
    client: Client,
}

impl std::fmt::Debug for Kubernetes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kubernetes")
    }
}

impl Kubernetes {
    #[must_use]
    pub const fn new(client: Client) -> Self {
        Self { client }
    }

    async fn read(&self) -> Result<Vec<Value>, Error> {
        let mut objects = Vec::new();
        for kind in KINDS {
            for version in kind.versions {
                if let Some(found) = self.list(kind, version).await? {
                    objects.extend(found);
                    break;
                }
            }
            if objects.len() > OBJECTS_MAX {
                let text = format!("the old mesh has more than {OBJECTS_MAX} objects");
                return Err(Error::Invalid(text));
            }
        }
        Ok(objects)
    }

    /// All objects of a kind in one version; nothing when that is not served.
    async fn list(&self, kind: &OldKind, version: &str) -> Result<Option<Vec<Value>>, Error> {
        let named = GroupVersionKind::gvk(kind.group, version, kind.kind);
        let resource = ApiResource::from_gvk_with_plural(&named, kind.plural);
        let api = Api::<DynamicObject>::all_with(self.client.clone(), &resource);
        let shown = format!("{}.{}", kind.plural, kind.group);
        for _ in 0..ATTEMPTS {
            match pages(&api, &resource).await {
                Ok(found) => return Ok(Some(found)),
                Err(KubeError::Api(status)) if status.code == 404 => return Ok(None),
                Err(KubeError::Api(status)) if status.code == 410 => {}
                Err(KubeError::Api(status)) if matches!(status.code, 401 | 403) => {
                    return Err(Error::Forbidden(format!("{shown}: {}", status.message)));
                }
                Err(error) => {
                    return Err(Error::Unavailable(format!("cannot list {shown}: {error}")));
                }
            }
        }
        let text = format!("the list of {shown} expires before it is read");
        Err(Error::Unavailable(text))
    }
}

async fn pages(api: &Api<DynamicObject>, resource: &ApiResource) -> Result<Vec<Value>, KubeError> {
    let mut params = ListParams::default().limit(PAGE);
    let mut objects = Vec::new();
    loop {
        let page = api.list(&params).await?;
        for object in page.items {
            let mut object = serde_json::to_value(object).map_err(KubeError::SerdeError)?;
            // Lists may leave out what is the same of all.
            object["apiVersion"] = resource.api_version.as_str().into();
            object["kind"] = resource.kind.as_str().into();
            objects.push(object);
        }
        let next = page.metadata.continue_.filter(|next| !next.is_empty());
        match next {
            Some(next) if objects.len() <= OBJECTS_MAX => params = params.continue_token(&next),
            _ => return Ok(objects),
        }
    }
}

impl OriginObjects for Kubernetes {
    fn objects(&self) -> Answer<'_, Vec<Value>> {
        Box::pin(self.read())
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use http_body_util::Full;
    use serde_json::json;
    use tower::service_fn;

    use super::*;

    /// An API that answers each path with a status and a body.
    fn api(
        answer: impl Fn(&str, &str) -> (u16, Value) + Clone + Send + Sync + 'static,
    ) -> Kubernetes {
        let service = service_fn(move |request: Request<kube::client::Body>| {
            let (path, query) = (
                request.uri().path(),
                request.uri().query().unwrap_or_default(),
            );
            let (status, body) = match request.method().as_str() {
                "GET" => answer(path, query),
                method => panic!("{method} {path}"),
            };
            let mut response = Response::new(Full::from(body.to_string()));
            *response.status_mut() = http::StatusCode::from_u16(status).unwrap();
            async move { Ok::<_, Infallible>(response) }
        });
        Kubernetes::new(Client::new(service, "default"))
    }

    fn status(code: u16) -> (u16, Value) {
        let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no", "reason": "x",
                          "code": code});
        (code, body)
    }

    fn page(names: &[&str], next: &str) -> (u16, Value) {
        let items: Vec<Value> = names
            .iter()
            .map(|name| json!({"metadata": {"name": name}, "spec": {"a": 1}}))
            .collect();
        (
            200,
            json!({"kind": "List", "apiVersion": "v1", "metadata": {"continue": next}, "items": items}),
        )
    }

    #[tokio::test]
    async fn every_kind_is_read_in_the_newest_version_that_is_served_page_by_page() {
        let kubernetes = api(|path, query| match path {
            "/apis/eventing.kyma-project.io/v1alpha1/subscriptions"
                if query.contains("continue=more") =>
            {
                page(&["b"], "")
            }
            "/apis/eventing.kyma-project.io/v1alpha1/subscriptions" => page(&["a"], "more"),
            "/apis/eventing.knative.dev/v1/triggers" => page(&["c"], ""),
            "/apis/eventing.knative.dev/v1beta1/triggers" => page(&["old"], ""),
            _ => status(404),
        });
        let objects = kubernetes.objects().await.unwrap();
        let told: Vec<_> = objects
            .iter()
            .map(|object| {
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                (
                    text(&object["apiVersion"]),
                    text(&object["kind"]),
                    text(&object["metadata"]["name"]),
                )
            })
            .collect();
        let expected = [
            ("eventing.kyma-project.io/v1alpha1", "Subscription", "a"),
            ("eventing.kyma-project.io/v1alpha1", "Subscription", "b"),
            ("eventing.knative.dev/v1", "Trigger", "c"),
        ];
        assert_eq!(
            told,
            expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()))
        );
        assert_eq!(objects[0]["spec"], json!({"a": 1}));
    }

    #[tokio::test]
    async fn what_must_not_be_read_or_expires_is_no_empty_mesh() {
        let refused = api(|_, _| status(403)).objects().await;
        assert!(matches!(refused, Err(Error::Forbidden(_))), "{refused:?}");
        let expired = api(|_, _| status(410)).objects().await;
        assert!(matches!(expired, Err(Error::Unavailable(_))), "{expired:?}");
        let broken = api(|_, _| status(500)).objects().await;
        assert!(matches!(broken, Err(Error::Unavailable(_))), "{broken:?}");
        assert_eq!(api(|_, _| status(404)).objects().await, Ok(Vec::new()));
    }
}
