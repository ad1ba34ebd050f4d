# Deletion comes last. Where a real server without controller-manager leaves something behind (orphans, foreground
# deletion, namespaces), only the answer is recorded and the rest is tidied away.
kn delete-dry-run delete channel first --dry-run=server
kn delete-one delete channel first
kn delete-missing delete channel first
kn delete-missing-ignored delete channel first --ignore-not-found
kn delete-wrong-uid delete --raw /apis/messaging.knative.dev/v1/namespaces/transcript/channels/second -f - <<<'{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"00000000-0000-4000-8000-000000000000"}}'
kn delete-wrong-version delete --raw /apis/messaging.knative.dev/v1/namespaces/transcript/channels/second -f - <<<'{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"resourceVersion":"1"}}'
kn delete-raw delete --raw /apis/messaging.knative.dev/v1/namespaces/transcript/channels/third
kn delete-selector delete channels -l row=2
kn delete-background delete trigger billing --cascade=background
kn delete-now delete configmap made --now

kn finalizer-create create -f channel-held.yaml
kn finalizer-delete delete channel held --wait=false
kn finalizer-delete-again delete channel held --wait=false
kn finalizer-held get channel held -o yaml
kn finalizer-add patch channel held --type=json -p '[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/more"}]'
kn finalizer-undelete patch channel held --type=json -p '[{"op":"remove","path":"/metadata/deletionTimestamp"}]'
kn finalizer-wait-not-yet wait --for=delete channel/held --timeout=1s
kn finalizer-remove patch channel held --type=merge -p '{"metadata":{"finalizers":null}}'
kn finalizer-gone wait --for=delete channel/held --timeout=20s
kn finalizer-get get channel held

quietly -n transcript create -f channels.yaml
kn delete-orphan delete channel second --cascade=orphan --wait=false
quietly -n transcript patch channel second --type=merge -p '{"metadata":{"finalizers":null}}'
kn delete-all delete channels --all
kn delete-all-again delete channels --all
kn delete-collection-raw delete --raw "$triggers?labelSelector=nobody%3Dhere"
kn delete-file delete -f trigger.yaml
k delete-cluster-scoped delete application shop
kn delete-unknown-kind delete nothing x

# A namespace that cannot go yet refuses new content.
k terminating-hold -n transcript-other create -f configmap-held.yaml
k terminating-delete delete namespace transcript-other --wait=false
k terminating-phase wait --for=jsonpath='{.status.phase}'=Terminating namespace/transcript-other --timeout=20s
k terminating-table get namespace transcript-other
k terminating-create -n transcript-other create configmap late --from-literal=a=b
k terminating-create-custom -n transcript-other create -f broker.yaml
quietly -n transcript-other patch configmap held --type=merge -p '{"metadata":{"finalizers":null}}'
