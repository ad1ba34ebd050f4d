# Client-side and server-side apply, and what both leave in managedFields (as JSON, which normalise.py can put in order).
rv() { field trigger "$1" .metadata.resourceVersion; }
quietly -n transcript delete trigger orders

kn apply-dry-run-server-new apply --dry-run=server -f trigger.yaml
kn apply-dry-run-left-nothing get trigger orders
kn diff-new diff -f trigger.yaml
kn apply-create apply -f trigger.yaml
before=$(rv orders)
kn apply-again apply -f trigger.yaml
fact apply-again-writes-nothing test "$before" = "$(rv orders)"
kn diff-none diff -f trigger.yaml
kn diff-changed diff -f trigger-changed.yaml
kn apply-dry-run-server apply --dry-run=server -o yaml -f trigger-changed.yaml
kn apply-dry-run-client apply --dry-run=client -f trigger-changed.yaml
fact apply-dry-run-writes-nothing test "$before" = "$(rv orders)"
kn apply-change apply -f trigger-changed.yaml
kn apply-changed get trigger orders -o json --show-managed-fields
kn apply-view-last-applied apply view-last-applied trigger/orders
kn apply-over-created apply -f trigger-billing.yaml

# From client-side to server-side apply, and on to another manager.
kn server-side-take-over apply --server-side -f trigger-changed.yaml
kn server-side-taken-over get trigger orders -o json --show-managed-fields
kn server-side-conflict-with-kubectl apply --server-side --field-manager=other -f trigger.yaml

kn server-side-create apply --server-side --field-manager=first -f trigger-ssa.yaml
before=$(rv applied)
kn server-side-again apply --server-side --field-manager=first -f trigger-ssa.yaml
fact server-side-again-writes-nothing test "$before" = "$(rv applied)"
kn server-side-conflict apply --server-side --field-manager=second -f trigger-ssa-other.yaml
kn server-side-dry-run apply --server-side --field-manager=second --force-conflicts --dry-run=server -f trigger-ssa-other.yaml
fact server-side-dry-run-writes-nothing test "$before" = "$(rv applied)"
kn server-side-force apply --server-side --field-manager=second --force-conflicts -f trigger-ssa-other.yaml
kn server-side-forced get trigger applied -o json --show-managed-fields
kn server-side-less apply --server-side --field-manager=first --force-conflicts -f trigger-ssa-less.yaml
kn server-side-pruned get trigger applied -o json --show-managed-fields
kn server-side-status apply --server-side --field-manager=status --subresource=status -f - < <(
    printf '%s\n' 'apiVersion: eventing.knative.dev/v1' 'kind: Trigger' 'metadata: {name: applied}' \
        'status: {conditions: [{type: Ready, status: "True", lastTransitionTime: "2024-02-29T12:00:00Z"}]}'
)
kn server-side-status-fields get trigger applied -o json --show-managed-fields
kn server-side-update-of-applied label trigger applied owner=third --overwrite
kn server-side-conflict-with-label apply --server-side --field-manager=first -f trigger-ssa-less.yaml
kn server-side-invalid apply --server-side --field-manager=first -f bad/enum.yaml
# One unknown field only: of several the real server names all or the first it meets, by chance.
kn server-side-unknown-field apply --server-side --field-manager=first -f - < <(sed '/delivery:/,$d' bad/unknown-field.yaml)

# Two managers and one list: whether they meet or conflict is for the schema to say.
k server-side-list-first apply --server-side --field-manager=first --force-conflicts -f application.yaml
k server-side-list-second apply --server-side --field-manager=second -f application-other.yaml
k server-side-list get application shop -o json --show-managed-fields
