# Bad input: every refusal has the text, the reason and the exit code of the real server.
for case in unknown-field wrong-type enum minimum missing-required rule name label annotation finalizer owner no-name no-kind version application-entry; do
    kn "bad-$case" create -f "bad/$case.yaml"
done
kn bad-enum-applied apply -f bad/enum.yaml
kn bad-unknown-field-strict create --validate=strict -f bad/unknown-field.yaml
kn bad-unknown-field-warn create --validate=warn --dry-run=server -f bad/unknown-field.yaml
kn bad-unknown-field-ignore create --validate=ignore --dry-run=server -o yaml -f bad/unknown-field.yaml
k bad-namespace-missing -n nowhere create -f trigger-minimal.yaml
kn bad-raw-json create --raw "$triggers" -f - <<<'{"apiVersion":'
kn bad-raw-empty create --raw "$triggers" -f - <<<'{}'
kn bad-raw-kind create --raw "$triggers" -f - <<<'{"apiVersion":"eventing.knative.dev/v1","kind":"Broker","metadata":{"name":"bad"}}'
kn bad-raw-namespace create --raw "$triggers" -f - <<<'{"apiVersion":"eventing.knative.dev/v1","kind":"Trigger","metadata":{"name":"bad","namespace":"elsewhere"},"spec":{"broker":"b","subscriber":{"uri":"http://bad.example/"}}}'
kn bad-raw-version-set create --raw "$triggers" -f - <<<'{"apiVersion":"eventing.knative.dev/v1","kind":"Trigger","metadata":{"name":"bad","resourceVersion":"7"},"spec":{"broker":"b","subscriber":{"uri":"http://bad.example/"}}}'
kn bad-raw-dry-run create --raw "$triggers?dryRun=Some" -f - <<<'{"apiVersion":"eventing.knative.dev/v1","kind":"Trigger","metadata":{"name":"bad"},"spec":{"broker":"b","subscriber":{"uri":"http://bad.example/"}}}'
kn bad-raw-field-validation create --raw "$triggers?fieldValidation=Sometimes" -f - <<<'{"apiVersion":"eventing.knative.dev/v1","kind":"Trigger","metadata":{"name":"bad"},"spec":{"broker":"b","subscriber":{"uri":"http://bad.example/"}}}'
kn bad-raw-duplicate-field create --raw "$triggers?fieldValidation=Strict" -f - <<<'{"apiVersion":"eventing.knative.dev/v1","kind":"Trigger","metadata":{"name":"bad"},"spec":{"broker":"a","broker":"b","subscriber":{"uri":"http://bad.example/"}}}'
kn bad-raw-replace-name replace --raw "$triggers/other" -f - <<<'{"apiVersion":"eventing.knative.dev/v1","kind":"Trigger","metadata":{"name":"orders"},"spec":{"broker":"b","subscriber":{"uri":"http://bad.example/"}}}'
kn bad-raw-create-on-object create --raw "$triggers/orders" -f - <<<'{}'
