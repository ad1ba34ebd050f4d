# The other ways to change an object: patch, label, annotate, replace, edit, status, and how versions guard them.
generation() { field trigger "$1" .metadata.generation; }

before=$(generation orders)
kn patch-merge patch trigger orders --type=merge -p '{"spec":{"filter":{"attributes":{"subject":"42","type":null}}}}'
fact patch-raises-generation test "$((before + 1))" = "$(generation orders)"
kn patch-merge-nothing patch trigger orders --type=merge -p '{"spec":{"broker":"default"}}'
kn patch-merge-malformed patch trigger orders --type=merge -p '{"spec":'
kn patch-merge-not-object patch trigger orders --type=merge -p '[1]'
kn patch-json patch trigger orders --type=json -p '[{"op":"replace","path":"/spec/delivery/retry","value":7},{"op":"add","path":"/metadata/labels/patched","value":"yes"}]'
kn patch-json-test-fails patch trigger orders --type=json -p '[{"op":"test","path":"/spec/broker","value":"other"},{"op":"remove","path":"/spec/delivery"}]'
kn patch-json-missing-path patch trigger orders --type=json -p '[{"op":"remove","path":"/spec/nothing"}]'
kn patch-json-null-test patch trigger orders --type=json -p '[{"op":"test","path":"/metadata/finalizers","value":null},{"op":"add","path":"/metadata/annotations/tested","value":"yes"}]'
kn patch-json-bad-op patch trigger orders --type=json -p '[{"op":"turn","path":"/spec"}]'
kn patch-strategic-refused patch trigger orders --type=strategic -p '{"spec":{"broker":"other"}}'
kn patch-invalid patch trigger orders --type=merge -p '{"spec":{"delivery":{"backoffPolicy":"random"}}}'
kn patch-name patch trigger orders --type=merge -p '{"metadata":{"name":"renamed"}}'
kn patch-uid patch trigger orders --type=merge -p '{"metadata":{"uid":"00000000-0000-4000-8000-000000000000"}}'
kn patch-stale patch trigger orders --type=merge -p '{"metadata":{"resourceVersion":"1"},"spec":{"broker":"other"}}'
kn patch-unknown-field patch trigger orders --type=merge -p '{"spec":{"colour":"blue"}}'
kn patch-missing patch trigger nobody --type=merge -p '{"spec":{}}'
kn patched get trigger orders -o json --show-managed-fields

before=$(generation orders)
kn label label trigger orders tier=gold
kn label-same label trigger orders tier=gold
kn label-other-refused label trigger orders tier=silver
kn label-overwrite label trigger orders tier=silver --overwrite
kn label-remove label trigger orders tier-
kn label-all label triggers --all all=yes
kn label-bad label trigger orders 'tier=not good'
kn annotate annotate trigger orders note='hello there'
kn annotate-remove annotate trigger orders note-
fact metadata-keeps-generation test "$before" = "$(generation orders)"

"$kubectl" -n transcript get trigger orders -o yaml >"$work/stale.yaml"
sed 's|retry: 7|retry: 9|' "$work/stale.yaml" >"$work/replace.yaml"
kn replace replace -f - <"$work/replace.yaml"
kn replace-stale replace -f - <"$work/stale.yaml"
kn replace-without-version replace -f trigger.yaml
kn replace-missing replace -f trigger-minimal.yaml
kn replace-raw-without-version replace --raw "$triggers/orders" -f - <<<'{"apiVersion":"eventing.knative.dev/v1","kind":"Trigger","metadata":{"name":"orders"},"spec":{"broker":"default","subscriber":{"uri":"http://orders.example/"}}}'
kn replaced get trigger orders -o yaml
export KUBE_EDITOR='sed -i s/orders.example/edited.example/'
kn edit edit trigger orders
unset KUBE_EDITOR
kn edited get trigger orders -o 'jsonpath={.spec.subscriber.uri}'

before=$(generation orders)
kn status-patch patch trigger orders --subresource=status --type=merge -p '{"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"False","reason":"Testing","message":"not yet","lastTransitionTime":"2024-02-29T12:00:00Z"}]}}'
kn status-patch-ignores-spec patch trigger orders --subresource=status --type=merge -p '{"spec":{"broker":"other"},"status":{"observedGeneration":2}}'
kn status-ignored-by-main patch trigger orders --type=merge -p '{"status":{"observedGeneration":77}}'
kn status-invalid patch trigger orders --subresource=status --type=merge -p '{"status":{"observedGeneration":"many"}}'
kn status-result get trigger orders -o json --show-managed-fields
fact status-keeps-generation test "$before" = "$(generation orders)"
kn status-table get triggers
kn status-wide get trigger orders -o wide

# kubectl does not believe a condition whose observedGeneration is behind.
kn wait-behind wait --for=condition=Ready=False trigger/orders --timeout=1s
quietly -n transcript patch trigger orders --subresource=status --type=merge -p '{"status":{"observedGeneration":'"$before"'}}'
kn wait-false wait --for=condition=Ready=False trigger/orders --timeout=20s
kn wait-not-yet wait --for=condition=Ready trigger/orders --timeout=1s
quietly -n transcript patch trigger orders --subresource=status --type=merge -p '{"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2024-02-29T12:00:01Z"}]}}'
kn wait-condition wait --for=condition=Ready trigger/orders --timeout=20s
kn wait-jsonpath wait --for=jsonpath='{.spec.broker}'=default trigger/orders --timeout=20s
kn wait-missing wait --for=condition=Ready trigger/nobody --timeout=1s
kn wait-create wait --for=create trigger/orders --timeout=20s
