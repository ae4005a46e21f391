# make help lists the targets.
GO      ?= go
MODULES := $(patsubst %/,%,$(dir $(shell find . -name go.mod -not -path './.*/*')))
$(if $(MODULES),,$(error no go.mod found))
TOOLS   := $(CURDIR)/.tools
FUZZTIME ?= 10s

GOLANGCI_VERSION    := v2.5.0
GOVULNCHECK_VERSION := v1.1.4
LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
VULN := $(TOOLS)/govulncheck-$(GOVULNCHECK_VERSION)

.PHONY: help
help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

.PHONY: test
test: format tidy vet lint ## everything that must pass: format, vet, linters, all tests with -race
	@set -e; for m in $(MODULES); do echo "== go test -race ./... ($$m)"; (cd $$m && $(GO) test -race ./...); done

.PHONY: format
format: ## fail where a file is not as gofmt writes it
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "not gofmt-ed: $$files"; exit 1; fi

.PHONY: tidy
tidy: ## fail where go.mod is not as go mod tidy writes it
	@set -e; for m in $(MODULES); do (cd $$m && $(GO) mod tidy -diff); done

.PHONY: vet
vet: ## go vet
	@set -e; for m in $(MODULES); do (cd $$m && $(GO) vet ./...); done

.PHONY: lint
lint: ## golangci-lint, where make tools has built it
	@if [ -x $(LINT) ]; then set -e; for m in $(MODULES); do (cd $$m && $(LINT) run ./...); done; \
	elif [ -n "$$CI" ]; then echo "golangci-lint is missing (make tools)"; exit 1; \
	else echo "left out: golangci-lint, which is not installed (make tools)"; fi

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME
	@set -e; for p in $$($(GO) list ./...); do \
	  list=$$($(GO) test -list '^Fuzz' $$p); for f in $$(echo "$$list" | grep '^Fuzz' || true); do \
	    echo "== $$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f\$$" -fuzztime $(FUZZTIME) $$p; \
	  done; done

.PHONY: bench
bench: ## measure beside other libraries, in some three minutes; writes bench/report-short
	cd bench && $(GO) run . -out report-short

.PHONY: bench-full
bench-full: ## the whole of it, in a quarter of an hour; writes bench/report
	cd bench && $(GO) run . -full -out report

.PHONY: bench-code
bench-code: ## the benchmarks beside the code
	$(GO) test -run '^$$' -bench . ./core ./keyfuncs ./adapters/... ./policy ./internal/replay

.PHONY: newest
newest: ## the tests with the newest dependencies, go.mod untouched
	@mkdir -p $(TOOLS); cp go.mod $(TOOLS)/newest.mod; cp go.sum $(TOOLS)/newest.sum
	@# One by one: a version that wants a newer Go than this one is left out, and said so.
	@for m in $$($(GO) list -m -f '{{if not (or .Indirect .Main)}}{{.Path}}{{end}}' all); do \
	  $(GO) get -modfile=$(TOOLS)/newest.mod $$m@latest || echo "left out: the newest $$m"; done
	$(GO) test -race -modfile=$(TOOLS)/newest.mod ./...

.PHONY: vuln
vuln: ## govulncheck: known vulnerabilities that this code can reach
	@[ -x $(VULN) ] || { echo "govulncheck is missing (make tools)"; exit 1; }
	$(VULN) ./...

.PHONY: tools
tools: ## build the linters into .tools
	GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	GOBIN=$(TOOLS) $(GO) install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)
	mv $(TOOLS)/golangci-lint $(LINT)
	mv $(TOOLS)/govulncheck $(VULN)
