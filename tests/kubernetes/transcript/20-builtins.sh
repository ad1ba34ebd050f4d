# Namespaces, ConfigMaps, Secrets and Leases. `create` of the first three sends Kubernetes protobuf rather than JSON.
k namespace-create create namespace transcript
k namespace-create-again create namespace transcript
k namespace-create-other create namespace transcript-other
k namespace-bad-name create namespace Bad_Name
k namespace-get get namespace transcript
k namespace-yaml get namespace transcript -o yaml
k namespace-describe describe namespace transcript
k namespace-label label namespace transcript transcript-other run=transcript
k namespace-selector get namespaces -l run=transcript --show-labels

kn configmap-create create configmap made --from-literal=colour=blue --from-literal=shape=round
kn configmap-create-again create configmap made --from-literal=colour=red
kn configmap-create-dry-run create configmap dry --from-literal=a=b --dry-run=server -o yaml
kn configmap-yaml get configmap made -o yaml
kn configmap-create-single create configmap single --from-literal=only=this
kn configmap-describe describe configmap single
kn configmap-apply apply -f configmap.yaml
kn configmap-apply-again apply -f configmap.yaml
kn configmap-apply-change apply -f configmap-changed.yaml
kn configmap-applied get configmap applied -o yaml
kn configmap-patch-strategic patch configmap made --type=strategic -p '{"data":{"shape":null,"size":"small"}}'
kn configmap-patch-merge patch configmap made --type=merge -p '{"data":{"colour":"green"},"metadata":{"labels":{"a":"b"}}}'
kn configmap-patched get configmap made -o json --show-managed-fields
kn configmap-table get configmaps
kn configmap-replace-without-version replace -f configmap.yaml
kn configmap-number apply -f configmap-number.yaml
kn configmap-number-unvalidated create --validate=false -f configmap-number.yaml
kn configmap-unknown-field patch configmap made --type=merge -p '{"date":{"a":"b"}}'
kn configmap-server-side apply --server-side -f configmap.yaml --field-manager=other
kn configmap-immutable patch configmap made --type=merge -p '{"immutable":true}'
kn configmap-immutable-change patch configmap made --type=merge -p '{"data":{"colour":"black"}}'

kn secret-create create secret generic made --from-literal=password=hush
kn secret-apply apply -f secret.yaml
kn secret-yaml get secret applied -o yaml
kn secret-table get secrets
kn secret-describe describe secret made
kn secret-change-type patch secret made --type=merge -p '{"type":"example.com/other"}'
kn secret-field-selector get secrets --field-selector type=Opaque -o name

kn lease-create create -f lease.yaml
kn lease-yaml get lease leader -o yaml
kn lease-table get leases
kn lease-patch patch lease leader --type=merge -p '{"spec":{"holderIdentity":"two","renewTime":"2024-02-29T12:00:02.000001Z"}}'
kn lease-patched get lease leader -o 'jsonpath={.spec}'
kn lease-bad-duration patch lease leader --type=merge -p '{"spec":{"leaseDurationSeconds":-1}}'
