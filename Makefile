# What one types most: `make demo` and `make test`. `make help` lists the rest.

BIN          := bin
VERSION      ?= v0.1.0-dev
GO           := go
GOTEST       ?= $(GO) test
TEST_FLAGS   ?=
FUZZTIME     ?= 5s
TOOL         := $(GO) tool -modfile=tools/go.mod
LINT         := $(GO) tool -modfile=tools/lint/go.mod
XPKG         := $(BIN)/xpkg
CONTROLPLANE := $(BIN)/xpkg-controlplane
KUBECTL      := $(BIN)/kubectl

.DEFAULT_GOAL := help
.PHONY: help build build-xpkg build-controlplane build-kubectl image demo test test-short lint generate check-generated bench clean fuzz

help: ## Show this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

build: build-xpkg build-controlplane ## Build bin/xpkg and bin/xpkg-controlplane

build-xpkg:
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags "-s -w -X github.com/xpkg-dev/xpkg/internal/version.Version=$(VERSION)" -o $(XPKG) ./cmd/xpkg
	@ln -sf xpkg $(BIN)/kubectl-crossplane

# The first build compiles Kubernetes, which takes about ten minutes on 2 cores.
build-controlplane:
	@mkdir -p $(BIN)
	@sh controlplane/build.sh $(CONTROLPLANE)

# kubectl, of the same version as the control plane, for the tests.
build-kubectl:
	@mkdir -p $(BIN)
	@sh controlplane/build.sh $(KUBECTL) k8s.io/kubernetes/cmd/kubectl

image: ## Build the image of the manager for two architectures into dist/image; IMAGE=REFERENCE pushes it too
	@mkdir -p dist
	cd tools/image && $(GO) run . -out ../../dist/image -version $(VERSION) $(if $(IMAGE),-push $(IMAGE))

demo: build build-kubectl ## The main job: build, push, install and use the examples on a control plane of its own
	@sh hack/demo.sh

test: build build-kubectl ## Everything that must pass
	$(GOTEST) $(TEST_FLAGS) -timeout 40m ./...
	cd controlplane && $(GO) test $(TEST_FLAGS) ./...
	cd tools/image && $(GO) test $(TEST_FLAGS) ./...
	cd examples/function-greet && $(GO) test $(TEST_FLAGS) ./...
	sh hack/demo.sh

test-short: ## The short loop: no control plane, no corpus of hundreds of megabytes
	$(GO) test -short $(TEST_FLAGS) ./...

lint: ## Formatting, vet and staticcheck
	@test -z "$$(gofmt -l apis cmd controlplane examples internal pkg test tools)" || { gofmt -l apis cmd controlplane examples internal pkg test tools; echo "run gofmt -w on these files" >&2; exit 1; }
	$(GO) vet ./...
	cd controlplane && $(GO) vet ./...
	cd tools/image && $(GO) vet ./...
	cd examples/function-greet && $(GO) vet ./...
	$(LINT) staticcheck ./...

generate: ## Generate deepcopy, CRDs, the reference documentation and the Helm chart
	$(GO) generate ./...

check-generated: generate ## Fail when a generated file is not up to date
	@git diff --exit-code -- apis charts docs || { echo "generated files are not up to date: run make generate and commit" >&2; exit 1; }
	@test -z "$$(git status --porcelain -- apis charts docs)" || { git status --porcelain -- apis charts docs; exit 1; }

fuzz: ## Run every fuzz target for FUZZTIME, five seconds by default
	@sh hack/fuzz.sh $(FUZZTIME)

bench: build ## Benchmarks, each with its floor measured in the same run (XPKG_BENCH=large: of up to 2,043 definitions)
	$(GO) test -run '^$$' -bench . -benchmem ./internal/... ./pkg/...
	$(GO) test -run '^$$' -bench . -benchtime 1x -timeout 6h ./test/bench

clean: ## Remove what was built
	rm -rf $(BIN)
