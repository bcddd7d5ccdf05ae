# The two main commands are `make compare` and `make test`. Each installs what it needs first.
VENV ?= .venv
export VENV
# Tests start a thousand Python programs: each module is compiled once, whatever the environment says.
export PYTHONDONTWRITEBYTECODE :=
BIN := $(VENV)/bin
# Ubuntu's versioned Rust is in a folder of its own, which is in no PATH.
export PATH := $(PATH)$(patsubst %,:%,$(lastword $(wildcard /usr/lib/rust-*/bin)))
ARGS ?=
# What runs after what, how many tests at a time, and which of them: tests/stages.py. AGAIN is for CI (.ci/run).
AGAIN ?=
STAGES = $(BIN)/python -P tests/stages.py $(AGAIN)
.DEFAULT_GOAL := help
.PHONY: compare test test-all quick check unit system test-cgroup2 rust setup setup-test setup-history bench fuzz lock wheel man reference docs clean help

compare: setup ## Compare a real RGW with a real Swift on this machine (twenty minutes the first time); ARGS="..." are passed on
	$(BIN)/weighbridge compare $(ARGS)

test: setup-test ## Checks, then tests, one stage after the other; all of them run, whatever fails
	@$(STAGES) images rust collect check unit system

test-all: setup-test ## All that `make test` runs, and what is marked test_all or by_hand; 10,000 cases of each fuzz test, of a new seed
	@$(STAGES) images-all rust collect check wheel unit-all system-all by-hand

quick: setup-test ## Lint, types, and the tests nearest to the changes since the last commit (SINCE=COMMIT: since that one)
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy
	@$(BIN)/python tests/touched.py --run $(or $(SINCE),HEAD)

check: setup-test ## Lint, types, imports and budgets: ruff, mypy --strict, import-linter, rustfmt, clippy; warnings are errors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/budgets.py
	cargo fmt --all --check && cargo clippy --quiet --workspace --all-targets --features weighbridge-engine/python -- -D warnings

rust: setup-test ## Rust tests of the engine, the FastCGI responder and the disks
	cargo test --quiet --workspace

unit: setup-test ## Tests that need no root and no cluster, without the slow ones
	@$(STAGES) unit-short

system: setup-test ## Tests with real Ceph, Swift and a browser; needs root
	@$(STAGES) system

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

setup-history: setup ## Also install what `weighbridge history` needs (Apache Otava, SciPy and database clients, 300 MB)
	$(BIN)/python -m pip --quiet --disable-pip-version-check install --require-hashes --requirement requirements-history.lock

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
