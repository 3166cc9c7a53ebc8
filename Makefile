# Every target creates what it needs, so on a new machine `make demo` or `make test` can be the first command.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV_VERSION := 0.13.8
READY := $(VENV)/.ready

# Tests start hundreds of processes, each of which would compile every module again, and every worker all assertions.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup demo demo-kafka test prepare durations test-fast test-slow crash schedule lint types contracts incidents endurance nodes readers fuzz oracle bench site wheel image release lock clean

##@ start here (missing tools are downloaded first)

help: ## List the targets
	@awk -F ':.*## ' '/^##@ /{printf "\n%s:\n", substr($$0, 5)} /^[a-z-]+:.*## /{printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Create .venv with the locked versions

$(READY): requirements.lock pyproject.toml tools/check-machine.sh
	@tools/check-machine.sh $(PYTHON)
	@echo "creating $(VENV) with the locked versions (about a minute, once)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	@touch $(READY)

demo: $(READY) ## Run a coordinator, members, the job, and SQL queries
	@$(BIN)/grouplake demo

demo-kafka: $(READY) ## Two coordinators with a topic of a private Kafka broker as their log; one is killed (KAFKA=4.1.1)
	@$(BIN)/grouplake demo --kafka $(or $(KAFKA),4.1.1)

##@ test

test: $(READY) ## The gate: lint, types, contracts, and every test that is neither slow nor downloads anything
	@$(BIN)/python -m tools.gate

prepare: $(READY) ## Download and build what the tests need, once (`make test` does it too)
	@PYTHONPATH=tests/support $(BIN)/python tools/prepare.py

durations: $(READY) ## Measure how long the test files take, which orders them (tests/durations.json)
	@$(BIN)/python -m pytest -m "not slow and not network" -n 6 --dist loadfile --record-durations

test-fast: $(READY) ## Tests without Spark, brokers and browsers
	@$(BIN)/python -m pytest -m "not slow and not network and not long and not spark and not broker and not browser"

test-slow: $(READY) ## Tests that take minutes, such as every broker generation, and those that download something
	@$(BIN)/python -m pytest -m "slow or network"

crash: $(READY) ## SIGKILL at every step and at random moments, two writers in parallel (KILLS=200 JOBS=20 SOAK_MEMBERS=… SOAK_KILLS=…)
	@CRASH_KILLS=$(or $(KILLS),200) CRASH_JOBS=$(or $(JOBS),20) $(BIN)/python -m pytest -s -m "slow or not slow" tests/crash tests/pipeline/test_two_writers.py

schedule: $(READY) ## systemd's units under load, with kills, restarts and a full disk (MINUTES=60 SEED=1)
	@SCHEDULE_MINUTES=$(or $(MINUTES),60) SEED=$(or $(SEED),1) $(BIN)/python -m pytest -s -m slow tests/e2e/test_systemd_schedule.py

lint: $(READY) ## ruff: lint rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(READY) ## mypy
	@$(BIN)/mypy

contracts: $(READY) ## import-linter: contracts between layers
	@$(BIN)/lint-imports

incidents: $(READY) ## Incidents on a live broker, and every statement judged (BEFORE=780 AWAY=480 AFTER=480 seconds, KEEP=DIR)
	@INCIDENTS_BEFORE=$(or $(BEFORE),780) INCIDENTS_AWAY=$(or $(AWAY),480) INCIDENTS_AFTER=$(or $(AFTER),480) INCIDENTS_KEEP=$(KEEP) \
	  $(BIN)/python -m pytest -s -m slow tests/incidents

endurance: $(READY) ## Job, pages, alerts and coordinator with an outage, full disks and hostile clients (MINUTES=90 SEED=1)
	@ENDURANCE_MINUTES=$(or $(MINUTES),90) SEED=$(or $(SEED),1) $(BIN)/python -m pytest -s -m slow tests/endurance

nodes: $(READY) ## Nodes that share a log on three brokers, under kills, restarts, cuts and freezes (FAULTS=50 MEMBERS=200 SEED=1)
	@FAULTS=$(or $(FAULTS),50) MEMBERS=$(or $(MEMBERS),200) SEED=$(or $(SEED),1) $(BIN)/python -m pytest -s -m slow tests/nodes

readers: $(READY) ## Read the tables with every reader of Delta that can be installed, and renew their table in docs/recipes.md
	@RECORD_READERS=1 $(BIN)/python -m pytest -m slow tests/e2e/test_readers_of_delta.py; $(BIN)/python docs/generate_lists.py

fuzz: $(READY) ## Mutated inputs for every parser (INPUTS=10000000, SECONDS=0: no limit, SEED=1)
	@$(BIN)/python tests/fuzz/fuzz_run.py --inputs $(or $(INPUTS),10000000) --seconds $(or $(SECONDS),0) --seed $(or $(SEED),1)

oracle: $(READY) ## Compare real brokers of four generations with our tables on random logs (SEEDS=10, FIRST=1)
	@PYTHONPATH=tests/support $(BIN)/python tests/oracle/oracle.py --seeds $(or $(SEEDS),10) --first $(or $(FIRST),1)

##@ measure

bench: $(READY) ## Run the benchmarks, about half an hour (BENCH=reader RECORDS=2M: one benchmark, one size)
	@for benchmark in benchmarks/bench_$(or $(BENCH),*).py; do \
	  name=$$(basename $$benchmark .py); echo "== $$name"; \
	  PYTHONPATH=tests/support:tests/model $(BIN)/python -m benchmarks.$$name $(if $(RECORDS),--records $(RECORDS)); \
	done

##@ maintain

site: $(READY) ## Build the documentation site in site; a broken link ends it
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --conf-dir docs/site . site
	@echo "site/index.html"

wheel: $(READY) ## Build the wheel and the source archive in dist/
	@rm -rf dist
	@$(BIN)/uv build --quiet --python $(BIN)/python
	@ls dist/*.whl

image: wheel ## Build the container image with Docker, of the version at the top of CHANGELOG.md
	@$(BIN)/python tools/release.py image dist

release: $(READY) ## Build what a release has in dist/: wheel, source archive, bill of materials, notes (docs/release.md)
	@$(BIN)/python tools/release.py files dist $(if $(TAG),--tag $(TAG))

lock: $(READY) ## Resolve the dependencies of pyproject.toml into requirements.lock, and those of the image
	@$(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --group dev --group site --all-extras pyproject.toml -o requirements.lock
	@$(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --no-annotate --python-version 3.11 --extra job --extra coordinator --extra dashboard --extra mcp -c requirements.lock pyproject.toml -o deploy/container/requirements.lock

clean: ## Remove .venv and caches
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist site
