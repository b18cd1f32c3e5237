# The main targets are demo and test. `make help` lists all targets.

BIN          := bin
VERSION      ?= v0.1.0-dev
GO           := go
GOTEST       ?= $(GO) test
TEST_FLAGS   ?=
FUZZTIME     ?= 5s
# Tests are compiled with the flags of the programs, and so share most of the build cache with them.
BUILD_FLAGS  := -trimpath -gcflags=all=-dwarf=false
TOOL         := $(GO) tool -modfile=tools/go.mod
LINT         := $(GO) tool -modfile=tools/lint/go.mod
MODULES      := controlplane test/gitops tools/image tools/release tools/alerts tools/site examples/function-greet
TOOL_MODULES := tools tools/lint tools/helm
SOURCES      := apis cmd controlplane examples hack internal pkg test tools
XPKG         := $(BIN)/xpkg
CONTROLPLANE := $(BIN)/xpkg-controlplane
KUBECTL      := $(BIN)/kubectl

.DEFAULT_GOAL := help
.PHONY: help build build-xpkg build-controlplane build-kubectl build-node image release demo recording screenshots site test test-full test-short test-race lint generate check-generated bench registry-goals growth clean fuzz hostile attack

help: ## Show this help
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

build: build-xpkg build-controlplane ## Build bin/xpkg and bin/xpkg-controlplane

build-xpkg:
	@mkdir -p $(BIN)
	CGO_ENABLED=0 $(GO) build $(BUILD_FLAGS) -ldflags "-s -w -X github.com/xpkg-dev/xpkg/internal/version.Version=$(VERSION)" -o $(XPKG) ./cmd/xpkg
	@ln -sf xpkg $(BIN)/kubectl-crossplane

# The first build compiles Kubernetes, which takes about four minutes on 2 cores.
build-controlplane:
	@mkdir -p $(BIN)
	@sh controlplane/build.sh $(CONTROLPLANE)

# kubectl, of the same version as the control plane, for the tests.
build-kubectl:
	@mkdir -p $(BIN)
	@sh controlplane/build.sh $(KUBECTL) k8s.io/kubernetes/cmd/kubectl

# The programs of a node, of the same version, for test/node.
build-node:
	@mkdir -p $(BIN)
	@sh controlplane/build.sh $(BIN)/kubelet k8s.io/kubernetes/cmd/kubelet
	@sh controlplane/build.sh $(BIN)/kube-scheduler k8s.io/kubernetes/cmd/kube-scheduler

image: ## Build the image of the manager for two architectures into dist/image; IMAGE=REFERENCE pushes it too
	@mkdir -p dist
	cd tools/image && $(GO) run . -out ../../dist/image -version $(VERSION) $(if $(IMAGE),-push $(IMAGE))

release: ## Build the files of the release VERSION into dist/VERSION: archives, bills of materials, chart, krew manifest, formula, checksums
	cd tools/release && $(GO) run . -out ../../dist/$(VERSION) -version $(VERSION)

demo: build build-kubectl ## Build, publish and install packages on a temporary control plane
	@sh hack/demo.sh

recording: build build-kubectl ## Record the demo as an animated image, docs/demo.svg
	@rm -f $(BIN)/demo.failed
	@{ sh hack/demo.sh 2>&1 || touch $(BIN)/demo.failed; } | sed -u 's|[^ =]*/xpkg-demo[.][A-Za-z0-9]*|$$DEMO|g' | $(GO) run ./hack/recording >$(BIN)/demo.svg
	@test ! -e $(BIN)/demo.failed
	@mv $(BIN)/demo.svg docs/demo.svg

screenshots: ## Write pictures of the web pages into docs/screenshots; it needs Chromium
	@mkdir -p docs/screenshots
	XPKG_SCREENSHOTS=$(CURDIR)/docs/screenshots $(GO) test ./internal/registry/web -run TestScreenshots -count 1

site: ## Write the documentation site into dist/site
	cd tools/site && $(GO) tool hugo --cleanDestinationDir --destination ../../dist/site

# The long tests of ./test run first, so that short ones use the processors at the end. Some attacks on the sandbox need a program that
# is linked dynamically, as this test is with cgo.
test: build build-kubectl ## Run the tests that prove every promise, in about half an hour on 2 processors
	CGO_ENABLED=0 $(GOTEST) $(BUILD_FLAGS) -ldflags=-w $(TEST_FLAGS) -timeout 40m $$($(GO) list ./test/... ./... | grep -v /internal/runtime/sandbox$$)
	CGO_ENABLED=1 $(GOTEST) $(BUILD_FLAGS) -ldflags=-w $(TEST_FLAGS) -timeout 40m ./internal/runtime/sandbox
	@for module in $(MODULES); do (cd $$module && CGO_ENABLED=0 $(GO) test $(BUILD_FLAGS) -ldflags=-w $(TEST_FLAGS) -timeout 30m ./...) || exit 1; done
	sh hack/hostile.sh sh hack/demo.sh

# The exhaustive tests: each fault at each call, scale, a node, GitOps tools, real providers, the whole attack, a hostile environment.
test-full: export XPKG_TEST = full
test-full: build build-kubectl build-node ## Run the tests exhaustively, with the race detector and fuzzing, in several hours
	CGO_ENABLED=0 $(GOTEST) $(BUILD_FLAGS) -ldflags=-w $(TEST_FLAGS) -timeout 4h $$($(GO) list ./test/... ./... | grep -v /internal/runtime/sandbox$$)
	CGO_ENABLED=1 $(GOTEST) $(BUILD_FLAGS) -ldflags=-w $(TEST_FLAGS) -timeout 1h ./internal/runtime/sandbox
	@for module in $(MODULES); do (cd $$module && CGO_ENABLED=0 $(GO) test $(BUILD_FLAGS) -ldflags=-w $(TEST_FLAGS) -timeout 1h ./...) || exit 1; done
	$(MAKE) hostile test-race fuzz FUZZTIME=30s

hostile: build build-kubectl ## Run the demo and tests of the commands without HOME, with a proxy that does not respond and open descriptors
	sh hack/hostile.sh sh hack/demo.sh
	sh hack/hostile.sh $(GO) test ./test/program ./internal/up ./internal/cli/... ./internal/runtime/sandbox

attack: export XPKG_TEST = full
attack: build ## Attack the control plane with hostile packages, users, runtimes and webhooks, and a registry with hostile clients
	$(GO) test -count 1 -v -timeout 2h ./test/attack
	$(GO) test -count 1 -v -timeout 30m ./internal/controller -run '^TestAProviderWithoutConversionIsUninstalled$$'
	$(GO) test -count 1 -v -timeout 30m ./internal/registry -run '^TestNoClientExhaustsAServer$$'
	CGO_ENABLED=1 $(GO) test -count 1 -timeout 1h ./internal/runtime/sandbox

# Tests wait for processes and servers, so four packages run at a time on two processors. make lint runs vet.
test-short: ## Run the tests that need no control plane and no corpus
	CGO_ENABLED=0 $(GO) test -short -vet=off -p 4 $(BUILD_FLAGS) -ldflags=-w $(TEST_FLAGS) ./...

# Without the option, each program that is built with the race detector waits a second before it exits, and the tests of commands start many.
test-race: ## Run the short tests of all packages with goroutines or locks under the race detector
	GORACE=atexit_sleep_ms=0 CGO_ENABLED=1 $(GOTEST) $(TEST_FLAGS) -race -timeout 40m -gcflags=all=-dwarf=false \
		-short $$(sh hack/concurrent.sh)

lint: ## Run gofmt, go vet, go mod tidy and golangci-lint, and check that no binary file but small screenshots is tracked
	@! git diff --cached --numstat $$(git hash-object -t tree /dev/null) | grep '^-' | grep -v '	docs/screenshots/[a-z-]*[.]png$$' || { echo "these files are binary: remove them with git rm --cached" >&2; exit 1; }
	@! find docs/screenshots -size +150k | grep . || { echo "these pictures have more than 150 KB: run make screenshots" >&2; exit 1; }
	@test -z "$$(gofmt -l $(SOURCES))" || { gofmt -l $(SOURCES); echo "run gofmt -w on these files" >&2; exit 1; }
	@for module in $(MODULES); do (cd $$module && $(GO) vet ./...) || exit 1; done
	@for module in . $(MODULES) $(TOOL_MODULES); do (cd $$module && $(GO) mod tidy -diff) || { echo "run go mod tidy in $$module" >&2; exit 1; }; done
	$(LINT) golangci-lint run ./...

generate: ## Generate deepcopy, CRDs, the reference documentation and the Helm chart
	$(GO) generate ./...

check-generated: generate ## Fail when a generated file is not up to date
	@git diff --exit-code -- apis charts docs || { echo "generated files are not up to date: run make generate and commit" >&2; exit 1; }
	@test -z "$$(git status --porcelain -- apis charts docs)" || { git status --porcelain -- apis charts docs; exit 1; }

fuzz: ## Run every fuzz target for FUZZTIME, five seconds by default
	@sh hack/fuzz.sh $(FUZZTIME)

bench: build ## Measure every goal of performance, each with its floor in the same run, in one table (XPKG_BENCH=large: up to 2,043 CRDs)
	$(GO) test -run '^$$' -bench . -benchtime 1x -timeout 6h ./test/bench

registry-goals: ## Measure every goal of the registry, the index and the search in one table; it needs the corpus, Chromium and docker-registry
	$(GO) test -run '^$$' -bench Goals/registry -benchtime 1x -timeout 2h ./test/bench

growth: ## Draw docs/growth.svg from the results in docs/performance.json
	$(GO) run ./hack/growth docs/performance.json >$(BIN)/growth.svg
	@mv $(BIN)/growth.svg docs/growth.svg

clean: ## Remove the built programs
	rm -rf $(BIN)
