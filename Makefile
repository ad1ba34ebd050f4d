# What people and continuous integration run. `make help` lists it.
# Programs from outside Rust are kept in $KUBERNETES_TOOLS, which may be a cache that outlives a checkout.

SHELL := /bin/bash
comma := ,
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export KUBERNETES_TOOLS ?= $(CURDIR)/target/kubernetes-tools
# Rust and Go, when `tools.sh` had to bring them.
export PATH := $(KUBERNETES_TOOLS)/go/bin:$(HOME)/.cargo/bin:$(PATH)

kubectls := $(KUBERNETES_TOOLS)/kubectl:$(KUBERNETES_TOOLS)/debian/kubectl

# A registry, and a shell for images.
registry_program := $(KUBERNETES_TOOLS)/bundles/docker-registry
busybox_program := $(KUBERNETES_TOOLS)/bundles/busybox-static
bundle_programs := DOCKER_REGISTRY='$(registry_program)' BUSYBOX='$(busybox_program)'

# Old meshes, and a client of theirs.
origin_programs := NATS_STREAMING_SERVER='$(KUBERNETES_TOOLS)/origins/nats-streaming-server' NATSS_CLIENT='$(KUBERNETES_TOOLS)/origins/natss-client' NATS_SERVER='$(KUBERNETES_TOOLS)/origins/nats-server' JETSTREAM_CLIENT='$(KUBERNETES_TOOLS)/origins/jetstream-client'

# Suites whose cases are not ours to keep: each is run when a variable names where they lie, and named when it does not.
optional := HEDDLE_CESQL_TCK HEDDLE_OSB_OPENAPI
HEDDLE_CESQL_TCK_is := the conformance cases of CloudEvents SQL (the directory with their YAML files)
HEDDLE_OSB_OPENAPI_is := requests invented from the OpenAPI document of the Open Service Broker API (its path)
left_out = $(foreach name,$(optional),$(if $($(name)),,echo 'LEFT OUT, since $(name) is not set: $($(name)_is)';)) true

# The suites that need programs from outside, as features of the crates that have them.
suites := heddle/kubectl-tests,heddle/power-tests,heddle/bundle-tests,heddle-bench/bundle-tests,heddle-bundles/registry-tests,heddle-bundles/sandbox-tests,heddle-origins/nats-tests$(if $(HEDDLE_CESQL_TCK),$(comma)heddle-api/tck)
built := $(or $(CARGO_TARGET_DIR),target)/debug

.PHONY: help
help: ## Say what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: check
check: ## Format, lints, generated files, tests and documentation: what needs Rust alone
	cargo xtask check

.PHONY: test
test: ## Everything: installs what tests need, then `check`, then fuzzing, power loss, kubectl old and new, a real registry and sandboxes against the binary, old meshes that are real, a package that is installed and removed, alert rules that fire and stay silent, dashboards that show what happens, the page in a browser, and the CESQL cases and the OSB document if they are there
	@$(left_out)
	.ci/tools.sh rust fuzz kubectl fuse bundles packaging prometheus origins browser $(if $(HEDDLE_OSB_OPENAPI),schemathesis)
	# Builds xtask on the way, and its dependencies as all tests want them; by itself it would build them once more.
	cargo test --locked --workspace --features $(suites),heddle-mesh/fault-injection --test tidy
	HEDDLE_KUBECTL='$(kubectls)' $(bundle_programs) $(origin_programs) $(built)/xtask check --features $(suites)
	$(built)/xtask fuzz $(GATE_FUZZ_SECONDS)
	tests/packaging/install.sh $(built)/heddle $(built)/xtask
	tests/prometheus/rules.sh $(built)/heddle $(built)/xtask
	tests/ui/run.sh $(built)/heddle
	$(if $(HEDDLE_OSB_OPENAPI),tests/osb/openapi.sh '$(HEDDLE_OSB_OPENAPI)')
	@$(left_out)

.PHONY: test-ui
test-ui: ## The page in a browser, against the real binary
	.ci/tools.sh rust browser
	cargo build --locked --package heddle
	tests/ui/run.sh $(built)/heddle

.PHONY: test-kubernetes
test-kubernetes: ## The same questions and commands to a real kube-apiserver and to heddle (builds both; takes a while)
	.ci/tools.sh rust kubectl kube-apiserver
	cargo build --locked --workspace --bins
	tests/kubernetes/side-by-side.sh

# How long each fuzz target runs.
FUZZ_SECONDS ?= 60
# And as a part of everything.
GATE_FUZZ_SECONDS ?= 10

.PHONY: fuzz
fuzz: ## Invented input for everything that reads strangers' bytes or the disk's, FUZZ_SECONDS (60) for each target
	.ci/tools.sh rust fuzz
	cargo xtask fuzz $(FUZZ_SECONDS)

.PHONY: bench
bench: ## Measure whole paths with heddle-bench (api, health, mesh, osb, registry) on this machine, optimised
	.ci/tools.sh rust bundles
	cargo build --locked --release --package heddle --package heddle-bench
	target/release/heddle-bench api
	target/release/heddle-bench health
	target/release/heddle-bench mesh
	target/release/heddle-bench osb
	$(bundle_programs) target/release/heddle-bench registry

.PHONY: dist
dist: ## What is handed out, in target/dist: a static binary in an archive, a Debian package and an image, with checksums
	.ci/tools.sh rust dist
	cargo xtask dist

.PHONY: audit
audit: ## Licences, advisories, sources and duplicate versions of all dependencies (deny.toml)
	.ci/tools.sh rust deny
	cargo deny --locked --workspace check

.PHONY: clean
clean: ## Remove what was built; $KUBERNETES_TOOLS is kept when it lies elsewhere
	cargo clean
