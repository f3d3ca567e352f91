# Everything a person does with this tree. Meson and ninja do the work; see HACKING.md.
BUILD ?= build
FUZZ_SECONDS ?= 60
MESON_ARGS ?=
# The distribution's: another Python's in the PATH may not find its own modules.
MESON := $(shell command -v /usr/bin/meson || echo meson)

.PHONY: build run stop test test-long bench bench-e2b bench-mcp docs-e2b lint docs fuzz install dist test-vm clean help deps
.DEFAULT_GOAL := build

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

deps:
	@scripts/deps build

build: deps $(BUILD)/build.ninja ## build/holt, build/holt-launch, build/holt-init, build/holt-warm.so
	@ninja -C $(BUILD)

$(BUILD)/build.ninja:
	@$(MESON) setup $(BUILD) $(MESON_ARGS) >$(BUILD).log 2>&1 ; \
		code=$$?; [ $$code = 0 ] || cat $(BUILD).log; rm -f $(BUILD).log; exit $$code

run: build ## build, start the daemon, show a first sandbox
	@scripts/first-run $(BUILD)

stop: ## end the daemon that make run has started
	@scripts/first-run $(BUILD) --stop

test: ## unit tests, corpus replay, attack suite and end-to-end tests, under ASan and UBSan
	@tests/run

test-long: ## the crash tests of the daemon for 300 rounds, and the client's commands under valgrind
	@ROUNDS=$${ROUNDS:-300} tests/run daemon-root daemon-rootless cli-valgrind

bench: ## measure, and compare with the other sandboxes of this machine
	@scripts/deps build bench
	@$(MAKE) --no-print-directory build
	@$(BUILD)/holt bench --peers

bench-e2b: ## measure with E2B's published SDK, beside a stub that has every answer ready
	@scripts/deps build bench
	@$(MAKE) --no-print-directory build
	@tests/support/e2b-clients build-e2b
	@HOLT_BUILD=$(abspath $(BUILD)) tests/bench/e2b/run

bench-mcp: ## measure with MCP's published SDK, beside the reference server
	@scripts/deps build bench
	@$(MAKE) --no-print-directory build
	@tests/support/mcp-clients build-mcp
	@HOLT_BUILD=$(abspath $(BUILD)) tests/bench/mcp/run

lint: ## format, layers, sizes, banned functions, clang-tidy, gcc and clang with -Werror
	@scripts/deps build test lint
	@tools/lint

docs: build ## docs/openapi.json, the reference in docs/api.md and the tools in docs/mcp.md, from the program's own tables
	@tools/api-docs $(BUILD)/holt

docs-e2b: build ## the table of clients in docs/e2b.md, from what they can do with this build
	@tests/support/e2b-clients build-e2b
	@HOLT_BUILD=$(abspath $(BUILD)) tools/e2b-table

fuzz: ## each fuzz target for FUZZ_SECONDS (60)
	@scripts/deps build test
	@tests/fuzz/run $(FUZZ_SECONDS)

install: build ## to DESTDIR and the prefix given at setup (/usr/local)
	@$(MESON) install -C $(BUILD) --no-rebuild

dist: ## a release in dist/: source, programs, SBOM, checksums; SIGN_KEY=FILE signs these with a key of ssh
	@scripts/deps build
	@SIGN_KEY="$(SIGN_KEY)" scripts/dist

test-vm: ## Debian 12 and 13 with their own kernels and systemd, as root and as a user, in virtual machines
	@scripts/deps build test vm
	@tests/vm/run $(CELLS)

clean: ## remove the build directories
	@rm -rf $(BUILD) build-asan build-clang build-fuzz build-python build-e2b build-mcp build-lint-gcc build-lint-clang
