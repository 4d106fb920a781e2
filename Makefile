# Everything a person does with the repository; `make help` lists it.
GO       ?= go
BIN      := bin/tmux-mcpd
VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS  := -X main.version=$(VERSION)
TOOLS    := .cache/tools
FUZZTIME ?= 30s
BENCH    ?= .
COUNT    ?= 1
SOAK     ?= 10m
RUNS     ?= 200

.DEFAULT_GOAL := help

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## bin/tmux-mcpd
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN) ./cmd/tmux-mcpd

.PHONY: run
run: build ## a demonstration on a tmux server of its own, until Ctrl-C
	@bash .ci/demo $(BIN)

.PHONY: test
test: ## every test, race detector on; what .ci/run runs
	$(GO) test -race -timeout 14m ./...

.PHONY: check
check: fmt vet lint structure ## format, vet, staticcheck, import rule, package docs

.PHONY: fmt
fmt: $(TOOLS)/gofumpt ## names files that are not in the one format
	@out=$$($(TOOLS)/gofumpt -l .); test -z "$$out" || { echo "not formatted (gofumpt -w .):"; echo "$$out"; exit 1; }

.PHONY: vet
vet: ## go vet, here and for macOS
	$(GO) vet ./...
	GOOS=darwin CGO_ENABLED=0 $(GO) vet ./...

.PHONY: lint
lint: $(TOOLS)/staticcheck ## staticcheck
	$(TOOLS)/staticcheck ./...

.PHONY: structure
structure: ## import rule, package docs, promises of the documents
	$(GO) test -count=1 -run '^TestStructure' ./integration

.PHONY: bench
bench: ## benchmarks; BENCH=regexp COUNT=n
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) -timeout 30m ./...

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (30s)
	@set -e; for pkg in $$($(GO) list ./...); do \
		for f in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "$$pkg $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

.PHONY: cover
cover: ## coverage of all packages by all tests
	@mkdir -p .cache
	$(GO) test -timeout 14m -coverpkg=./... -coverprofile=.cache/cover.out ./...
	$(GO) tool cover -func=.cache/cover.out | tail -1

IMAGE ?= tmux-mcpd
DOCKER ?= docker

.PHONY: image
image: ## the container image of the Dockerfile; DOCKER=podman or buildah too
	$(DOCKER) build -t $(IMAGE) --build-arg VERSION=$(VERSION) .

.PHONY: clean
clean: ## removes bin and .cache
	rm -rf bin .cache

$(TOOLS)/staticcheck: .ci/tools/go.mod
	$(GO) -C .ci/tools build -o $(CURDIR)/$@ honnef.co/go/tools/cmd/staticcheck
	@touch $@

$(TOOLS)/gofumpt: .ci/tools/go.mod
	$(GO) -C .ci/tools build -o $(CURDIR)/$@ mvdan.cc/gofumpt
	@touch $@

.PHONY: tmuxes
tmuxes: ## other releases of tmux, into .cache/tmux
	@.ci/tools/tmuxes

.PHONY: test-tmux
test-tmux: tmuxes ## the integration tests on every tmux had, one line each
	@.ci/tools/test-tmux

.PHONY: agree
agree: ## the transcript against tmux itself, long
	TRANSCRIPT_AGREE=340 $(GO) test -count=1 -timeout 30m -run Agree -v ./state/transcript

.PHONY: soak
soak: ## random programs and readers for SOAK (10m), then a flood of 200 MB
	TMUX_MCPD_SOAK=$(SOAK) $(GO) test -race -count=1 -timeout 60m -run '^TestDeltasOfRandomPrograms$$' ./state
	TMUX_MCPD_FLOOD=200 $(GO) test -count=1 -timeout 60m -run '^TestFloodBesideSleepingReader$$' -v ./state

.PHONY: runs
runs: ## RUNS (200) random commands in every shell; TMUX_MCPD_TEST_TMUX=binary
	TMUX_MCPD_TEST_RUNS=$(RUNS) $(GO) test -count=1 -timeout 60m -run '^TestRunRandomCommands$$' ./state

.PHONY: restarts
restarts: ## the daemon ended 50 times under 8 busy clients
	TMUX_MCPD_RESTARTS=50 $(GO) test -count=1 -timeout 20m -run '^TestD07RestartsUnderBusyClients$$' -v ./integration

SUITE ?= bookworm
RUN   ?= ^TestSystemd

.PHONY: systemd
systemd: ## the installed service under the systemd of SUITE (bookworm); as root; RUN=regexp
	GO='$(GO)' .ci/tools/systemd $(SUITE) '$(RUN)'

.PHONY: record
record: ## recordings of real programs for the transcript, made anew
	$(GO) run ./state/transcript/internal/record
