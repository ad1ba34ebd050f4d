# Events: written in either form, read in both; describe and events look for them by field selector.
uid=$(field trigger orders .metadata.uid)
kn event-create-core create -f - < <(sed "s/uid: UID/uid: $uid/" event-core.yaml)
kn event-create-events create -f - < <(sed "s/uid: UID/uid: $uid/" event-events.yaml)
kn event-core-as-events get events.events.k8s.io orders.core -o yaml
kn event-events-as-core get events.v1. orders.events -o yaml
kn event-table get events --sort-by=.metadata.name
kn event-events-table get events.events.k8s.io --sort-by=.metadata.name
kn event-selector get events --field-selector involvedObject.name=orders,type=Warning -o name
kn event-selector-regarding get events.events.k8s.io --field-selector regarding.name=orders -o name
kn event-selector-unknown get events --field-selector message=x
kn events-command events
kn events-for events --for trigger/orders
kn events-types events --types=Warning
kn describe describe trigger orders
kn describe-none describe broker default
kn describe-missing describe trigger nobody
kn describe-selector describe triggers -l team=red
kn event-without-object create --raw /api/v1/namespaces/transcript/events -f - <<<'{"apiVersion":"v1","kind":"Event","metadata":{"name":"loose"},"reason":"None"}'
kn event-invalid create --raw /apis/events.k8s.io/v1/namespaces/transcript/events -f - <<<'{"apiVersion":"events.k8s.io/v1","kind":"Event","metadata":{"name":"thin"},"reason":"None"}'
