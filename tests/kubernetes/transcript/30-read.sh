# Reading custom kinds in every form kubectl can ask for. Short name, category and selectable field are those that the
# definitions name.
kn create create -f trigger.yaml
kn create-again create -f trigger.yaml
kn create-second create -f trigger-billing.yaml
k create-elsewhere -n transcript-other create -f trigger-minimal.yaml
k create-cluster-scoped create -f application.yaml
kn create-broker create -f broker.yaml
kn create-several create -f channels.yaml
kn generate-name create -f trigger-generate-name.yaml
kn generate-name-get get triggers -l made=yes -o name
quietly -n transcript delete triggers -l made=yes

short=$(field crd channels.messaging.knative.dev '.spec.names.shortNames[0]')
category=$(field crd channels.messaging.knative.dev '.spec.names.categories[-1:]')
selectable=$(field crd triggers.eventing.knative.dev '.spec.versions[0].selectableFields[0].jsonPath')

kn get-table get triggers
kn get-one get trigger orders
kn get-two get trigger orders billing
kn get-slash get trigger/orders broker/default
kn get-kinds get triggers,brokers
kn get-wide get triggers -o wide
kn get-yaml get trigger orders -o yaml
kn get-json get trigger orders -o json
kn get-list-yaml get triggers -o yaml
kn get-name get triggers -o name
kn get-jsonpath get triggers -o 'jsonpath={range .items[*]}{.metadata.name} {.spec.broker}{"\n"}{end}'
kn get-columns get triggers -o custom-columns=NAME:.metadata.name,TO:.spec.subscriber.uri,RETRY:.spec.delivery.retry
kn get-sorted get triggers --sort-by=.spec.broker -o name
kn get-template get trigger orders -o 'go-template={{.spec.broker}}{{"\n"}}'
k get-all-namespaces get triggers -A
k get-cluster-scoped get applications
k get-cluster-scoped-yaml get application shop -o yaml
kn get-short-name get "${short:-channels}"
k_through get-category sort -n transcript get "${category:-none}" -o name
kn get-full-name get triggers.v1.eventing.knative.dev
kn get-no-headers get channels --no-headers
kn get-show-kind get channels --show-kind
kn get-show-labels get triggers --show-labels
kn get-label-columns get triggers -L team,app
kn get-show-managed-fields get trigger orders -o yaml --show-managed-fields
kn get-subresource get trigger orders --subresource=status
kn get-chunked get channels --chunk-size=1 -o name
kn get-none get brokers -l nobody=here

kn selector-equal get triggers -l team=blue -o name
kn selector-not-equal get triggers -l team!=blue -o name
kn selector-in get triggers -l 'team in (blue,red),app' -o name
kn selector-not-in get triggers -l 'team notin (blue)' -o name
kn selector-absent get triggers -l '!team' -o name
kn selector-bad get triggers -l 'team=blue=red'
kn selector-bad-value get --raw "$triggers?labelSelector=team%20in%20()"
kn field-selector-name get triggers --field-selector metadata.name=billing -o name
kn field-selector-name-not get triggers --field-selector metadata.name!=billing -o name
k field-selector-namespace get triggers -A --field-selector metadata.namespace=transcript-other -o name
kn field-selector-selectable get triggers --field-selector "$(s=${selectable:-.spec.broker}; echo "${s#.}")=other" -o name
kn field-selector-unknown get triggers --field-selector spec.subscriber.uri=x
kn field-selector-bad get triggers --field-selector nonsense

kn get-missing get trigger nobody
kn get-missing-kind get nothings
kn get-missing-kind-in-group get nothings.eventing.knative.dev
k get-missing-namespace -n nowhere get triggers
kn get-missing-ignored get trigger nobody --ignore-not-found

kn raw-get get --raw "$triggers/orders"
kn raw-list-limit get --raw "/apis/messaging.knative.dev/v1/namespaces/transcript/channels?limit=1"
kn raw-list-bad-limit get --raw "$triggers?limit=many"
kn raw-list-match-without-version get --raw "$triggers?resourceVersionMatch=Exact"
kn raw-list-bad-version get --raw "$triggers?resourceVersion=soon"
kn raw-watch get --raw "$triggers?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dorders"
kn raw-watch-initial-events-without-match get --raw "$triggers?watch=true&timeoutSeconds=1&sendInitialEvents=true"
kn raw-get-status get --raw "$triggers/orders/status"
kn raw-get-unknown-subresource get --raw "$triggers/orders/nothing"

relabel() {
    "$kubectl" -n transcript label trigger orders seen=once
    "$kubectl" -n transcript label trigger orders seen-
    "$kubectl" -n transcript delete trigger short-lived
}
quietly -n transcript create -f - < <(sed 's/name: minimal/name: short-lived/' trigger-minimal.yaml)
kn_watch watch-table 7 relabel get triggers -w
touch_orders() { "$kubectl" -n transcript annotate trigger orders seen=yes; }
kn_watch watch-one 3 touch_orders get trigger orders -w
untouch_orders() { "$kubectl" -n transcript annotate trigger orders seen-; }
kn_watch watch-objects 2 untouch_orders get trigger orders -w -o 'jsonpath={.metadata.name} {.metadata.annotations}{"\n"}'
enter_and_leave() {
    "$kubectl" -n transcript label trigger billing watched=yes
    "$kubectl" -n transcript label trigger billing watched=no --overwrite
    "$kubectl" -n transcript label trigger billing watched-
}
quietly -n transcript label trigger orders watched=yes
kn_watch watch-selector 4 enter_and_leave get triggers -l watched=yes -w --output-watch-events
quietly -n transcript label trigger orders watched-
