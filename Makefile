# Every target makes what it needs: on a fresh machine `make demo` or `make test` is the first command.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.8
READY := $(VENV)/.ready

.PHONY: help setup demo demo-kafka test test-fast test-slow crash lint types contracts fuzz oracle bench wheel lock clean

##@ start here (what is missing is made or downloaded first)

help: ## List the targets
	@awk -F ':.*## ' '/^##@ /{printf "\n%s:\n", substr($$0, 5)} /^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Make .venv with the locked versions

$(READY): requirements.lock pyproject.toml deploy/check-machine.sh
	@deploy/check-machine.sh $(PYTHON)
	@echo "making $(VENV) with the locked versions (a minute, once)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $(READY)

demo: $(READY) ## A coordinator, members that come and go, the job, and SQL over its tables
	@$(BIN)/grouplake demo

demo-kafka: $(READY) ## The same with a private Kafka and real consumers (KAFKA=4.1.1)
	@$(BIN)/grouplake demo --kafka $(or $(KAFKA),4.1.1)

##@ test

test: lint types contracts $(READY) ## Lint, types and all tests but the slow ones
	@$(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile

test-fast: $(READY) ## Tests without Spark and brokers
	@$(BIN)/python -m pytest -m "not slow and not spark and not broker and not browser"

test-slow: $(READY) ## The tests that take minutes: every broker generation
	@$(BIN)/python -m pytest -m slow

crash: $(READY) ## Kill -9 at every step, at random moments, two writers at once (KILLS=200 JOBS=20 STORM_MEMBERS=… STORM_KILLS=…)
	@CRASH_KILLS=$(or $(KILLS),200) CRASH_JOBS=$(or $(JOBS),20) $(BIN)/python -m pytest -s -m "slow or not slow" tests/crash tests/pipeline/test_two_writers.py

lint: $(READY) ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(READY) ## mypy
	@$(BIN)/mypy

contracts: $(READY) ## import-linter: which layer may import which
	@$(BIN)/lint-imports

fuzz: $(READY) ## Mutated input for every parser (INPUTS=10000000, SECONDS=0: no limit, SEED=1)
	@$(BIN)/python tests/fuzz/fuzz_run.py --inputs $(or $(INPUTS),10000000) --seconds $(or $(SECONDS),0) --seed $(or $(SEED),1)

oracle: $(READY) ## Random logs in real brokers of four generations and in our tables (SEEDS=10, FIRST=1)
	@PYTHONPATH=tests/support $(BIN)/python tests/oracle/oracle.py --seeds $(or $(SEEDS),10) --first $(or $(FIRST),1)

##@ measure

bench: $(READY) ## Measure this machine, half an hour; BENCH=reader RECORDS=2M for one benchmark at one size
	@for benchmark in benchmarks/bench_$(or $(BENCH),*).py; do \
	  name=$$(basename $$benchmark .py); echo "== $$name"; \
	  $(BIN)/python -m benchmarks.$$name $(if $(RECORDS),--records $(RECORDS)); \
	done

##@ maintain

wheel: $(READY) ## Build dist/grouplake-….whl and the source archive
	@rm -rf build dist
	@$(BIN)/uv build --quiet --python $(BIN)/python
	@ls dist/*.whl

lock: $(READY) ## Resolve the dependencies of pyproject.toml into requirements.lock
	@$(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --group dev --all-extras pyproject.toml -o requirements.lock

clean: ## Remove .venv and caches
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
