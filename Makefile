# fermata's tasks; `make` lists them. Works with GNU make 3.81 and newer, and any POSIX sh.
# Which Go is used is said in go.mod alone: an older one fetches it.

.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

GO        ?= go
PREFIX    ?= $(HOME)/.local
PKG       ?= ./...
BENCH     ?= .
BENCHTIME ?= 1s
ARGS      ?=

# What the released binary is for; `make check` builds all of it for each.
PLATFORMS := linux-amd64 linux-arm64 darwin-amd64 darwin-arm64 windows-amd64 windows-arm64

# Without git, or outside a clone, the version is "unknown". Lazy: only a build asks.
VERSION = $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# $(call step,name,command) runs a command under a one-line header, then says how long it took, or that it failed.
# The command may be a list of shell commands; it runs in a subshell.
define step
@echo '== $(1)'; start=$$(date +%s); \
( $(2) ); status=$$?; took="$$(($$(date +%s) - start)) s"; \
if [ $$status -eq 0 ]; then echo "   ok, $$took"; else echo "   FAILED: $(1), after $$took" >&2; fi; \
exit $$status
endef

.PHONY: help
help: ## List what make can do
	@echo 'usage: make TARGET [VARIABLE=value]'; echo
	@awk 'BEGIN { FS = ":[^#]*## " } /^[a-z-]+:.*## / { printf "  %-9s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# Under job control fermata is the terminal's foreground group by itself: Ctrl-C stops the answer, and not make as well.
.PHONY: run
run: build ## Talk to fermata in this folder; ARGS="…" is passed on. Without a key it uses the built-in model
	@if [ -t 0 ]; then set -m; fi; bin/fermata ask --workspace . $(ARGS); exit $$?

# Pure Go: cgo is off. VCS stamping is off because it fails in a clone that belongs to another user.
.PHONY: build
build: ## Build bin/fermata
	@CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '-X main.version=$(VERSION)' -o bin/ ./cmd/fermata

BINDIR  = $(DESTDIR)$(PREFIX)/bin
BASHDIR = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
ZSHDIR  = $(DESTDIR)$(PREFIX)/share/zsh/site-functions
FISHDIR = $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d

.PHONY: install
install: build ## Install fermata and its shell completions under PREFIX (default ~/.local)
	@mkdir -p '$(BINDIR)' '$(BASHDIR)' '$(ZSHDIR)' '$(FISHDIR)'
	@install -m 755 bin/fermata '$(BINDIR)/fermata'
	@bin/fermata completion bash > '$(BASHDIR)/fermata'
	@bin/fermata completion zsh > '$(ZSHDIR)/_fermata'
	@bin/fermata completion fish > '$(FISHDIR)/fermata.fish'
	@echo 'installed $(BINDIR)/fermata, and completions for bash, zsh and fish'

# What the sandbox's tests run, where it is not installed: the distribution's own package, unpacked and not installed. Other
# systems than Debian's kin test the sandbox when bubblewrap is installed; CI must not go without.
BUBBLEWRAP = $(CURDIR)/.cache/bubblewrap/usr/bin

.PHONY: bubblewrap
bubblewrap:
	@if ! PATH="$$PATH:$(BUBBLEWRAP)" command -v bwrap >/dev/null && command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null; then \
	  mkdir -p .cache/bubblewrap && cd .cache/bubblewrap && \
	  { apt-get download -qq bubblewrap || { apt-get update -qq && apt-get download -qq bubblewrap; }; } >/dev/null 2>&1 && \
	  dpkg-deb -x bubblewrap_*.deb . || echo '   bubblewrap could not be had: its tests see only that it is not there'; \
	fi

# The race detector is the only thing here that needs a C compiler (on macOS not even that). Building runtime/race tells
# whether it can be had, with Go's own choice of compiler or another one. CI must not lose it without a word.
.PHONY: test
test: bubblewrap ## Run all tests, with the race detector where there is a C compiler; PKG=./agent ARGS='-run Stop' narrows
	$(call step,test, \
	  race=''; \
	  if $(GO) build -race runtime/race 2>/dev/null; then race=-race; \
	  else for cc in gcc clang cc; do \
	    if command -v $$cc >/dev/null && CGO_ENABLED=1 CC=$$cc $(GO) build -race runtime/race 2>/dev/null; then \
	      race=-race; export CGO_ENABLED=1 CC=$$cc; break; \
	    fi; \
	  done; fi; \
	  if [ -z "$$race" ]; then \
	    if [ "$$CI" = true ]; then echo 'no working C compiler: the race detector needs one (install gcc or clang)' >&2; exit 1; fi; \
	    echo '   no working C compiler: testing without the race detector'; \
	  fi; \
	  PATH="$$PATH:$(BUBBLEWRAP)" $(GO) test -timeout 30m $$race $(ARGS) $(PKG))
	@[ '$(PKG)' != ./... ] || $(MAKE) test-nvim
	@[ '$(PKG)' != ./... ] || $(MAKE) test-vscode

# The plugin runs in the real Neovims that it is for. They come from Debian's packages; CI must not lose them without a word.
.PHONY: test-nvim
test-nvim: ## Test the Neovim plugin in two real Neovims, which are fetched into .cache
	$(call step,test-nvim, \
	  if [ "$$CI" != true ] && ! command -v apt-get >/dev/null; then \
	    echo '   not tested: the Neovims come from Debian packages; there is no apt-get here'; exit 0; \
	  fi; \
	  $(GO) test -tags nvim $(ARGS) ./cmd/internal/neovim)

# What it needs is put below .cache/vscode by editors/vscode/test/setup.sh. Pictures of all that was seen are left in
# .cache/vscode/shots, in a light theme too with FERMATA_THEMES=both. WHAT=unit leaves out real VS Code;
# WHAT='real -- --test-name-pattern=stop' narrows.
.PHONY: test-vscode
test-vscode: ## Test the VS Code extension: types, eslint, unit tests, package, and in real VS Code with a browser
	$(call step,test-vscode, \
	  if [ "$$CI" != true ] && [ "$$(uname -s)" != Linux ]; then \
	    echo '   not tested: the VS Code of the tests can be set up on Linux only'; exit 0; \
	  fi; \
	  GO='$(GO)' sh editors/vscode/test/all.sh $(WHAT))

# One header, then each package with its benchmarks: quiet about packages that have none, and still what benchstat reads.
.PHONY: bench
bench: ## Run the benchmarks; BENCH=regexp PKG=./transcript narrows, BENCHTIME=5s lengthens
	@{ $(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -benchtime '$(BENCHTIME)' $(ARGS) $(PKG) 2>&1 || echo FAILED; } | { \
	  cpu='' pkg='' status=0; \
	  while IFS= read -r line; do case $$line in \
	    goos:*|goarch:*) ;; \
	    cpu:*) [ -n "$$cpu" ] || echo "$$line"; cpu=$$line ;; \
	    pkg:*) pkg=$$line ;; \
	    PASS|ok\ *|'?   '*|*'no test files]') ;; \
	    FAILED) status=1 ;; \
	    Benchmark*) [ -z "$$pkg" ] || printf '\n%s\n' "$$pkg"; pkg=''; printf '%s\n' "$$line" ;; \
	    *) printf '%s\n' "$$line" ;; \
	  esac; done; exit $$status; }

.PHONY: bench-vscode
bench-vscode: ## Measure in real VS Code how long a stop takes to be seen
	@GO='$(GO)' sh editors/vscode/test/all.sh bench

# In this order, cheap ones first.
CHECKS := check-format check-vet check-fix check-staticcheck check-modules check-tidy check-types check-lua
CROSS  := $(PLATFORMS:%=check-%)

.PHONY: check $(CHECKS) $(CROSS)
check: $(CHECKS) $(CROSS) ## Run every check but the tests; make check-vet runs one

# gofmt of the toolchain that go.mod names, not of whatever is first in PATH. -l succeeds also when it lists files.
check-format:
	$(call step,gofmt -l, \
	  files=$$("$$($(GO) env GOROOT)/bin/gofmt" -l $(wildcard cmd rpc agent transcript tools)) || exit 1; \
	  [ -z "$$files" ] || { echo "$$files"; exit 1; })

check-vet:
	$(call step,go vet,$(GO) vet ./...)

check-fix:
	$(call step,go fix -diff,$(GO) fix -diff ./...)

check-staticcheck:
	$(call step,staticcheck,$(GO) tool staticcheck ./...)

check-modules:
	$(call step,go mod tidy -diff,$(GO) mod tidy -diff)

check-tidy:
	$(call step,tidy,$(GO) run ./cmd/internal/tidy)

check-types:
	$(call step,types of the protocol,$(GO) run ./cmd/internal/wirets -check editors/vscode/src/protocol.ts)

check-lua:
	$(call step,stylua and luacheck, \
	  if [ "$$CI" != true ] && ! { command -v node && command -v apt-get; } >/dev/null; then \
	    echo '   not checked: this needs node for StyLua and apt-get for luacheck'; exit 0; \
	  fi; \
	  node editors/nvim/test/stylua.mjs .cache --check && sh editors/nvim/test/luacheck.sh)

# One platform: build what ships. The tests for other systems are type-checked too, once for each system.
$(CROSS): check-%:
	$(call step,build for $*, \
	  export CGO_ENABLED=0 GOOS=$(firstword $(subst -, ,$*)) GOARCH=$(lastword $(subst -, ,$*)); \
	  $(GO) build -buildvcs=false -o /dev/null ./... $(if $(filter %-amd64,$*),&& $(GO) vet ./...))

.PHONY: clean
clean: ## Remove what make builds
	@rm -rf bin .cache coverage.* *.test *.prof *.pprof *.trace
