# make help lists the targets.
GO      ?= go
MODULES := $(patsubst %/,%,$(dir $(shell find . -name go.mod -not -path './.*/*')))
$(if $(MODULES),,$(error no go.mod found))
# The modules that others import: the root, and the adapters and observers that are modules of their own.
PUBLISHED := $(filter . ./adapters/% ./observe/otel ./observe/prometheus,$(MODULES))
TOOLS   := $(CURDIR)/.tools
FUZZTIME ?= 10s

GOLANGCI_VERSION    := v2.5.0
GOVULNCHECK_VERSION := v1.1.4
GREMLINS_VERSION := v0.6.0
LINT := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
VULN := $(TOOLS)/govulncheck-$(GOVULNCHECK_VERSION)
GREMLINS := $(TOOLS)/gremlins-$(GREMLINS_VERSION)

.PHONY: help
help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

LEFT_OUT := $(TOOLS)/left-out

# Many packages wait for servers and timers for half of their time: twice as many as
# there are processors run at a time. vet has run before, and no test reads debug
# information, which takes the linker half of its time.
TESTS := $(GO) test -timeout=20m -shuffle=on -vet=off -ldflags=-s -p $(shell echo $$((2 * $$(getconf _NPROCESSORS_ONLN))))
# The packages that take longest, which are begun first.
LONGEST := ./stores/redis ./internal/instances ./stores/memcached ./core/storetest ./stores/synced/redisbackend ./stores/resilient ./login ./policy

.PHONY: test
test: format tidy lint allocations ## everything that must pass: format, vet, linters, all tests with -race in random order
	@mkdir -p $(TOOLS); rm -f $(LEFT_OUT)
	@echo '== go test -race -shuffle=on ./... (.)'; FLOODGATE_LEFT_OUT=$(LEFT_OUT) $(TESTS) -race $(LONGEST) ./...
	@# Most of the time of a small module goes into one package: two modules at a time.
	@$(MAKE) --no-print-directory -j 2 -O $(addprefix test-in/,$(filter-out .,$(MODULES)))
	@if [ -s $(LEFT_OUT) ]; then echo "left out: $$(wc -l < $(LEFT_OUT)) tests"; sort -u $(LEFT_OUT); fi

test-in/%:
	@echo '== go test -race -shuffle=on ./... ($*)'; cd $* && FLOODGATE_LEFT_OUT=$(LEFT_OUT) $(TESTS) -race ./...

.PHONY: allocations
allocations: ## the tests that count allocations, which cannot run with -race
	$(TESTS) -run Alloc ./core ./keyfuncs ./observe ./stores/denycache ./stores/resilient ./adapters/...
	@set -e; for m in $(filter-out .,$(PUBLISHED)); do echo "== go test -run Alloc ./... ($$m)"; (cd $$m && $(TESTS) -run Alloc ./...); done

# What is tested with the oldest Go; FLOOR=./... is everything.
FLOOR ?= ./core/... ./keyfuncs/... ./login/...

.PHONY: floor
floor: ## with the oldest Go that go.mod allows: compile and vet everything, run the tests of FLOOR
	@v=go$$($(GO) list -m -f '{{.GoVersion}}'); \
	if ! GOTOOLCHAIN=$$v $(GO) version >/dev/null 2>&1; then echo "left out: $$v, which cannot be had"; exit 0; fi; \
	set -e; export GOTOOLCHAIN=$$v; $(GO) version; for m in $(PUBLISHED); do (cd $$m && $(GO) build -ldflags=-s ./... && $(GO) vet ./...); done; $(TESTS) $(FLOOR)

# The systems and processors on which everything must compile, tests included.
PLATFORMS := windows/amd64 darwin/arm64 linux/386 linux/arm

.PHONY: cross
cross: ## compile everything, tests included, for other systems and processors
	@printf '%s\n' $(PLATFORMS) | xargs -P 2 -I {} sh -c 'set -e; p={}; for m in $(PUBLISHED); do \
	  echo "== go vet ./... for $$p ($$m)"; (cd $$m && GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) vet ./...); done'

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
lint: ## golangci-lint, which runs go vet too; go vet alone, where make tools has not built it
	@# All modules in one workspace: what they import in common is looked at once.
	@if [ -x $(LINT) ]; then rm -f $(TOOLS)/go.work $(TOOLS)/go.work.sum; export GOWORK=$(TOOLS)/go.work; $(GO) work init $(MODULES) && GOGC=200 $(LINT) run $(addsuffix /...,$(MODULES)); \
	elif [ -n "$$CI" ]; then echo "golangci-lint is missing (make tools)"; exit 1; \
	else echo "left out: golangci-lint, which is not installed (make tools)"; $(MAKE) vet; fi

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME
	@mkdir -p $(TOOLS); cache=$$($(GO) env GOCACHE)/fuzz; set -e; \
	list=$$($(GO) list -f '{{.Dir}} {{.ImportPath}}' ./...); echo "$$list" | while read -r dir p; do \
	  grep -qs '^func Fuzz' $$dir/*_test.go || continue; \
	  $(GO) test -c -vet=off -ldflags=-s -fuzz=. -o $(TOOLS)/fuzz.test $$p; \
	  for f in $$(cd $$dir && $(TOOLS)/fuzz.test -test.list '^Fuzz'); do echo "== $$p $$f"; \
	    (cd $$dir && $(TOOLS)/fuzz.test -test.run '^$$' -test.fuzz "^$$f\$$" -test.fuzztime $(FUZZTIME) -test.fuzzcachedir $$cache/$$p); \
	  done; \
	done; rm -f $(TOOLS)/fuzz.test

.PHONY: bench
bench: ## measure beside other libraries, in some three minutes; writes bench/report-short
	cd bench && $(GO) run . -out report-short

.PHONY: bench-full
bench-full: ## the whole of it, in half an hour; writes bench/report
	cd bench && $(GO) run . -full -out report

.PHONY: bench-code
bench-code: ## the benchmarks beside the code
	$(GO) test -run '^$$' -bench . ./core ./keyfuncs ./adapters/... ./policy/... ./cmd/floodgate/internal/replay
	@set -e; for m in $(filter-out .,$(PUBLISHED)); do (cd $$m && $(GO) test -run '^$$' -bench . ./...); done

.PHONY: rehearse
rehearse: ## tag a copy of all modules as for a release, and build consumers with them, without a network
	$(GO) test -tags release -count=1 ./internal/releasetest

.PHONY: newest
newest: ## the tests with the newest dependencies, go.mod untouched
	@mkdir -p $(TOOLS); cp go.mod $(TOOLS)/newest.mod; cp go.sum $(TOOLS)/newest.sum
	@# One by one: a version that wants a newer Go than this one is left out, and said so.
	@for m in $$($(GO) list -m -f '{{if not (or .Indirect .Main)}}{{.Path}}{{end}}' all); do \
	  $(GO) get -modfile=$(TOOLS)/newest.mod $$m@latest || echo "left out: the newest $$m"; done
	$(GO) test -race -modfile=$(TOOLS)/newest.mod ./...

.PHONY: vuln
vuln: ## govulncheck in each module: known vulnerabilities that the code can reach
	@[ -x $(VULN) ] || { echo "govulncheck is missing (make tools)"; exit 1; }
	@# govulncheck ends with 3 if it has found one, and with another status if it
	@# cannot reach its database: only that is let pass, and said.
	@for m in $(MODULES); do echo "== govulncheck ($$m)"; status=0; (cd $$m && $(VULN) ./...) || status=$$?; \
	  if [ $$status -eq 3 ]; then exit 1; \
	  elif [ $$status -ne 0 ]; then echo "left out: govulncheck in $$m"; fi; done

.PHONY: mutants
mutants: $(GREMLINS) ## change the code of one package, and list the changes that no test notices: PKG=./keyfuncs
	$(GREMLINS) unleash $(or $(PKG),$(error name a package: make mutants PKG=./keyfuncs))

$(GREMLINS):
	GOBIN=$(TOOLS) $(GO) install github.com/go-gremlins/gremlins/cmd/gremlins@$(GREMLINS_VERSION)
	mv $(TOOLS)/gremlins $(GREMLINS)

.PHONY: tools
tools: ## build the linters into .tools
	GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	GOBIN=$(TOOLS) $(GO) install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)
	mv $(TOOLS)/golangci-lint $(LINT)
	mv $(TOOLS)/govulncheck $(VULN)
