# What the server says it offers.
k version version
k api-resources-eventing api-resources --api-group=eventing.knative.dev
k api-resources-messaging api-resources --api-group=messaging.knative.dev
k api-resources-application api-resources --api-group=applicationconnector.kyma-project.io -o wide
k_through api-resources-core 'grep -E "^(NAME|configmaps|events|namespaces|secrets) "' api-resources --api-group= -o wide
k api-resources-leases api-resources --api-group=coordination.k8s.io
k_through api-resources-category sort api-resources --categories=knative -o name
k_through api-versions 'grep -E "(knative.dev|kyma-project.io|heddle.dev)/|^(v1|coordination.k8s.io/v1|events.k8s.io/v1|apiextensions.k8s.io/v1)$"' api-versions

k raw-healthz get --raw /healthz
k raw-readyz get --raw /readyz
k raw-api get --raw /api
k raw-group get --raw /apis/eventing.knative.dev
k raw-group-version get --raw /apis/messaging.knative.dev/v1
k raw-unknown-group get --raw /apis/nobody.example/v1
k raw-unknown-path get --raw /nothing/here

k crd-list get crd triggers.eventing.knative.dev channels.messaging.knative.dev applications.applicationconnector.kyma-project.io
k crd-established wait --for=condition=Established crd/triggers.eventing.knative.dev --timeout=20s
k crd-names get crd triggers.eventing.knative.dev -o 'jsonpath={.spec.names}{"\n"}{.spec.scope}{"\n"}{.status.acceptedNames}{"\n"}{.status.storedVersions}'
k crd-conditions get crd channels.messaging.knative.dev -o 'jsonpath={range .status.conditions[*]}{.type}={.status} {.reason}{"\n"}{end}'

k can-i-create auth can-i create triggers.eventing.knative.dev -n default
k can-i-status auth can-i patch triggers.eventing.knative.dev --subresource=status -n default
k can-i-everything auth can-i '*' '*' --all-namespaces

k explain-kind explain trigger
k explain-field explain trigger.spec.delivery
k explain-recursive explain trigger.spec --recursive
k explain-cluster-kind explain application.spec.services
k explain-metadata explain trigger.metadata.finalizers
k explain-builtin explain configmap.data
k explain-unknown explain trigger.spec.nothing
