# What a schema does to objects: defaults, pruning, bounds, sets and keyed lists, rules and what they say.
registry() { # NAME SPEC - a raw create that is not kept
    k "$1" create --raw '/apis/heddle.dev/v1alpha1/registries?dryRun=All' -f - \
        <<<'{"apiVersion":"heddle.dev/v1alpha1","kind":"Registry","metadata":{"name":"try"},"spec":'"$2"'}'
}
registry schema-defaults '{"type":"push"}'
registry schema-default-inside '{"type":"push","massRemoval":{"percent":10},"tags":{}}'
registry schema-null-takes-default '{"type":"push","massRemoval":null,"idScheme":null}'
registry schema-null-without-default '{"type":"push","url":null}'
registry schema-prunes '{"type":"push","colour":"blue","massRemoval":{"shape":"round"}}'
registry schema-above-maximum '{"type":"push","massRemoval":{"percent":101}}'
registry schema-below-minimum '{"type":"push","refreshIntervalSeconds":0}'
registry schema-fraction '{"type":"push","revisionHistory":1.5}'
registry schema-whole-fraction '{"type":"push","revisionHistory":3.0}'
registry schema-beyond-int32 '{"type":"push","refreshIntervalSeconds":3000000000}'
registry schema-too-short '{"type":"push","url":""}'
registry schema-not-a-list '{"type":"push","images":"one"}'
registry schema-null-item '{"type":"push","images":[null]}'
registry schema-set-twice '{"type":"push","images":["one","two","one"]}'
registry schema-key-twice '{"type":"push","tags":{"named":[{"image":"one","tag":"a"},{"image":"one","tag":"a"}]}}'
registry schema-key-missing '{"type":"push","tags":{"named":[{"image":"one"}]}}'
registry schema-enum-empty '{"type":""}'
registry schema-rule '{"type":"push","stalePolicy":{"hideAfterSeconds":5}}'
registry schema-several '{"idScheme":"serial","massRemoval":{"min":0,"confirmations":"all"},"failOnError":"no"}'
registry schema-spec-not-an-object '"push"'

k schema-create apply --server-side --field-manager=first -f registry.yaml
k schema-created get registry shelf -o json --show-managed-fields
k schema-merge apply --server-side --field-manager=second -f registry-other.yaml
k schema-merged get registry shelf -o json --show-managed-fields
k schema-table get registries
k schema-less apply --server-side --field-manager=first -f registry-less.yaml
k schema-pruned get registry shelf -o json --show-managed-fields
k schema-immutable patch registry shelf --type=merge -p '{"spec":{"type":"quay"}}'
k schema-default-returns patch registry shelf --type=json -p '[{"op":"remove","path":"/spec/idScheme"}]'
k schema-status-date patch registry shelf --subresource=status --type=merge -p '{"status":{"lastSuccess":"yesterday"}}'
k schema-status-condition patch registry shelf --subresource=status --type=merge -p '{"status":{"conditions":[{"type":"Ready","status":"Maybe"}]}}'
k schema-status-twice patch registry shelf --subresource=status --type=merge -p '{"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"Ready","status":"False"}]}}'
k schema-status patch registry shelf --subresource=status --type=merge -p '{"status":{"lastSuccess":"2024-02-29T12:00:00Z","liveBundleCount":7,"conditions":[{"type":"Ready","status":"True"}]}}'
k schema-status-table get registry shelf -o wide
k schema-explain-defaults explain registry.spec.massRemoval
k schema-explain-list explain registry.spec.tags.named

kn schema-unknown-fields-kept create --raw '/apis/messaging.knative.dev/v1/namespaces/transcript/channels?dryRun=All&fieldValidation=Strict' -f - \
    <<<'{"apiVersion":"messaging.knative.dev/v1","kind":"Channel","metadata":{"name":"free"},"spec":{"channelTemplate":{"apiVersion":"x/v1","kind":"X","spec":{"any":[1,"b",{"c":null}]}}}}'
kn schema-trigger-immutable patch trigger orders --type=merge -p '{"spec":{"broker":"other"}}'
kn schema-trigger-dialects patch trigger orders --type=merge -p '{"spec":{"filters":[{"exact":{"type":"a"}},{"exact":{"type":"a"},"prefix":{"type":"b"}}]}}'
kn schema-trigger-filters patch trigger orders --type=merge -p '{"spec":{"filters":[{"not":{"all":[{"suffix":{"source":"x"}},{"exact":{"type":"a"}}]}}]}}' -o yaml
quietly -n transcript patch trigger orders --type=merge -p '{"spec":{"filters":null}}'
k schema-delete delete registry shelf
