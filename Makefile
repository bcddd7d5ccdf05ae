# The two main commands are `make compare` and `make test`. Each installs what it needs first.
VENV ?= .venv
export VENV
# Tests start a thousand Python programs: each module is compiled once, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=
BIN := $(VENV)/bin
# Ubuntu's versioned Rust is in a folder of its own, which is in no PATH.
export PATH := $(PATH)$(patsubst %,:%,$(lastword $(wildcard /usr/lib/rust-*/bin)))
ARGS ?=
# Four test files at a time, the longest first; a file runs in one process, so its fixtures are created once.
AT_ONCE := -n 4 --dist loadfile --no-loadscope-reorder
.DEFAULT_GOAL := help
.PHONY: compare test quick check unit unit-long system test-cgroup2 rust setup setup-test bench fuzz lock wheel man reference docs clean help

compare: setup ## Compare a real RGW with a real Swift on this machine (ten to fifteen minutes the first time); ARGS="..." are passed on
	$(BIN)/weighbridge compare $(ARGS)

test: setup-test ## Every check and every test; all of them run, whatever fails
	@# In parallel with the unit tests: the images for system tests, and the checks of the code (mostly one process).
	@$(BIN)/python tests/system/build_images.py >$(VENV)/images.log 2>&1 & images=$$!; \
	  $(MAKE) --no-print-directory check rust >$(VENV)/check.log 2>&1 & check=$$!; \
	  $(MAKE) --no-print-directory unit-long; done=$$?; \
	  wait $$check || done=$$?; cat $(VENV)/check.log; wait $$images || cat $(VENV)/images.log; \
	  $(MAKE) --no-print-directory system || done=$$?; exit $$done

quick: setup-test ## Lint, types, and the tests affected by changes since the last commit (SINCE=COMMIT: since that one)
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy
	@tests=$$($(BIN)/python tests/touched.py $(or $(SINCE),HEAD)); \
	  [ -z "$$tests" ] || $(BIN)/pytest -q -n 2 $$tests

check: setup-test ## Lint, types and imports: ruff, mypy --strict, import-linter, rustfmt, clippy; warnings are errors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	MYPYPATH=tests/support $(BIN)/mypy tests/support tests/system
	$(BIN)/lint-imports
	cargo fmt --all --check && cargo clippy --quiet --workspace --all-targets -- -D warnings

rust: setup-test ## Rust tests of the engine, the FastCGI responder and the disks
	cargo test --quiet --workspace

unit: setup-test ## Tests that need no root and no cluster, without the slow ones
	$(BIN)/pytest -q tests --ignore=tests/system -m "not long" $(AT_ONCE)

unit-long: setup-test ## All tests that need no root and no cluster, with 10,000 cases of each fuzz test
	WEIGHBRIDGE_FUZZ_CASES=$${WEIGHBRIDGE_FUZZ_CASES:-10000} $(BIN)/pytest -q tests --ignore=tests/system $(AT_ONCE)

system: setup-test ## Tests with real Ceph, Swift and a browser; needs root
	@# Most tests wait for daemons: four files at a time, each with its own state; then those that need half of the
	@# machine, two at a time; then those that need all of it. All of them run, whatever fails.
	$(BIN)/pytest -q tests/system -m "not pair and not alone and not by_hand" $(AT_ONCE); four=$$?; \
	  $(BIN)/pytest -q tests/system -m pair -n 2 --dist load; two=$$?; \
	  $(BIN)/pytest -q tests/system -m alone && [ $$four = 0 ] && [ $$two = 0 ]

test-cgroup2: setup-test ## Lab hosts and a comparison on cgroup version 2, without and under systemd (User-Mode Linux; images must be there)
	@scripts/cgroup2.sh '$(BIN)/pytest -q -p no:cacheprovider tests/system/test_lab.py && $(BIN)/weighbridge up rgw-beast && \
	  $(BIN)/weighbridge down'
	@LIMIT_S=1200 scripts/cgroup2.sh '$(BIN)/weighbridge compare --layouts rgw-beast,swift-s3api --no-attest \
	  --suite tests/support/few_objects.yaml --out /run/out/runs'
	@SYSTEMD=1 scripts/cgroup2.sh '$(BIN)/weighbridge up null && $(BIN)/weighbridge exec client-1 -- true && $(BIN)/weighbridge down'

bench: setup-test ## Measure the driver's figures of docs/benchmarks.md on this machine (ARGS="--json FILE")
	$(BIN)/python benchmarks/driver_cost.py $(ARGS)

setup: ## Install missing packages, create .venv, build the Rust parts
	@scripts/setup.sh

setup-test:
	@scripts/setup.sh test

fuzz: setup-test ## Fuzz every parser with a new seed (SEED=N repeats a run; CASES=N)
	@seed=$${SEED:-$$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')}; echo "seed $$seed"; done=0; \
	  export WEIGHBRIDGE_FUZZ_SEED=$$seed WEIGHBRIDGE_FUZZ_CASES=$${CASES:-100000}; \
	  $(BIN)/pytest -q tests --ignore=tests/system -k fuzz -n 4 || done=1; \
	  cargo test --quiet --workspace --test 'any_*' || done=1; \
	  [ $$done = 0 ] || { echo "repeat with: make fuzz SEED=$$seed" >&2; exit 1; }

lock: ## Update the versions and hashes of the Python packages that `make setup` installs
	@scripts/lock.sh

wheel: setup-test ## Build dist/: a wheel for machines without a compiler, and the sdist
	@scripts/wheel.sh

man: setup ## Make docs/weighbridge.1 again, from the help
	$(BIN)/python scripts/man.py >docs/weighbridge.1.new && mv docs/weighbridge.1.new docs/weighbridge.1

reference: setup ## Make docs/reference.md, verbs.md and layouts.md again, from the records, the help and the files behind them
	@for page in reference verbs layouts; do \
	  $(BIN)/python scripts/$$page.py >docs/$$page.md.new && mv docs/$$page.md.new docs/$$page.md || exit 1; done

docs: $(VENV)/docs/bin/mkdocs ## Build docs/ as a site, build/site/index.html, to be read and searched without a network
	NO_MKDOCS_2_WARNING=1 $(VENV)/docs/bin/mkdocs build --strict
	@echo build/site/index.html

$(VENV)/docs/bin/mkdocs: requirements-docs.lock
	python3 -m venv --clear $(VENV)/docs
	$(VENV)/docs/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes --requirement $<
	@touch $@

clean: ## Remove what was built (results in runs/ and the images stay)
	rm -rf $(VENV) build dist *.egg-info target drivers/engine/_native*.so
	rm -rf gateways/apache/fastcgi_responder topologies/lab/vdisk_server .mypy_cache .ruff_cache .pytest_cache .hypothesis

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20
