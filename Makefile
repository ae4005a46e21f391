# make help lists the targets.
GO      ?= go
MODULES := $(patsubst %/go.mod,%,$(shell git ls-files "go.mod" "**/go.mod"))
TOOLS   := $(CURDIR)/.tools
LINT    := $(shell command -v golangci-lint || ls $(TOOLS)/golangci-lint 2>/dev/null)
FUZZTIME ?= 10s

GOLANGCI_VERSION    := v2.5.0
GOVULNCHECK_VERSION := v1.1.4

.PHONY: help
help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

.PHONY: test
test: format vet lint ## everything that must pass: format, vet, linters, all tests with -race
	@set -e; for m in $(MODULES); do echo "== go test -race ./... ($$m)"; (cd $$m && $(GO) test -race ./...); done

.PHONY: format
format: ## fail where a file is not as gofmt writes it
	@files=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$files" ]; then echo "not gofmt-ed: $$files"; exit 1; fi

.PHONY: vet
vet: ## go vet
	@set -e; for m in $(MODULES); do (cd $$m && $(GO) vet ./...); done

.PHONY: lint
lint: ## golangci-lint, where it is installed
ifeq ($(LINT),)
	@if [ -n "$$CI" ]; then echo "golangci-lint is missing"; exit 1; fi
	@echo "left out: golangci-lint, which is not installed (make tools)"
else
	$(LINT) run ./...
endif

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME
	@set -e; for p in $$($(GO) list ./...); do \
	  for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz' || true); do \
	    echo "== $$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$p; \
	  done; done

.PHONY: bench
bench: ## the benchmarks beside the code
	$(GO) test -run '^$$' -bench . ./core ./keyfuncs ./adapters/...

.PHONY: newest
newest: ## the tests with the newest dependencies, go.mod untouched
	@mkdir -p $(TOOLS); cp go.mod $(TOOLS)/newest.mod; cp go.sum $(TOOLS)/newest.sum
	$(GO) get -modfile=$(TOOLS)/newest.mod -u -t ./...
	$(GO) test -modfile=$(TOOLS)/newest.mod ./...

.PHONY: vuln
vuln: ## govulncheck: known vulnerabilities that this code can reach
	$(GO) run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) ./...

.PHONY: tools
tools: ## build the linters into .tools
	GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
