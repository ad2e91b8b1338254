# `make` alone says what each target is for. Every target sets up what it needs by itself.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Tests start hundreds of programs: what they import is compiled once.
unexport PYTHONDONTWRITEBYTECODE

PYTHON := .venv/bin/python
# Half of the time of a test is waiting: for leases, disks, processes. Two cores keep three busy.
WORKERS ?= 3
# Whole programs come first and take minutes: whoever is done takes tests from them.
PYTEST := $(PYTHON) -m pytest -n $(WORKERS) --dist worksteal
PIP := $(PYTHON) -m pip --disable-pip-version-check
COMPILE := $(PYTHON) -m uv pip compile --quiet --universal --python-version 3.12 \
	--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate

SEEDS ?= 500
UNIT := $(wildcard tests/unit tests/codegen tests/typing tests/golden)
FAST := $(wildcard tests/unit tests/codegen)

PYTHON_READY := .venv/.psych-ready
NODE_READY := node_modules/.psych-ready

.PHONY: help setup demo generate check-generated check-published lint \
	test test-fast test-unit test-functional test-e2e test-sim services services-stop sim chaos \
	bench lock clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(PYTHON_READY) ## make .venv with the locked dependencies and this project, once

demo: $(PYTHON_READY) ## run an agent, kill its worker, let another finish, show the report
	$(PYTHON) docs/examples/demo.py

generate: $(PYTHON_READY) ## write generated/ from schema/
	$(PYTHON) -m codegen

check-generated: $(PYTHON_READY) ## fail if generated/ is not what schema/ gives
	tools/check_generated $(PYTHON) -m codegen

check-published: $(PYTHON_READY) $(NODE_READY) ## check the published schemas with ajv and tsc
	node tools/check_published.mjs

lint: $(PYTHON_READY) $(NODE_READY) ## ruff, mypy, import rules, schema rules, drift, published schemas
	$(PYTHON) -m ruff check
	$(PYTHON) -m ruff format --check
	$(PYTHON) -m mypy
	.venv/bin/lint-imports
	$(PYTHON) -m codegen --lint
	$(MAKE) --no-print-directory check-generated
	$(MAKE) --no-print-directory check-published

test: $(PYTHON_READY) $(NODE_READY) services ## run every test (WORKERS=n processes, 3 unless told)
	$(PYTEST) tests/sim tests/e2e tests/chaos $(UNIT) tests/functional tests/services

test-fast: $(PYTHON_READY) ## the tests to run while editing: under a minute
	$(PYTEST) $(FAST)

test-unit: $(PYTHON_READY) ## unit tests, and those of the generator, typing and golden files
	$(PYTEST) $(UNIT)

test-functional: $(PYTHON_READY) $(NODE_READY) services ## real stores and servers on loopback
	$(PYTEST) tests/functional tests/services

test-e2e: $(PYTHON_READY) $(NODE_READY) services ## whole programs: workers and servers killed
	$(PYTEST) tests/e2e tests/chaos

test-sim: $(PYTHON_READY) ## 500 simulated worlds, and faults planted into the engine
	$(PYTEST) tests/sim

sim: $(PYTHON_READY) ## SEEDS=n simulated worlds (500), then each planted fault and its first seed
	$(PYTHON) -m tests.sim --seeds $(SEEDS) --jobs $(WORKERS) --planted

services: $(PYTHON_READY) $(NODE_READY) ## start the real servers that the store tests need
	$(PYTHON) -m tests.services start

services-stop: $(PYTHON_READY) ## stop them
	$(PYTHON) -m tests.services stop

chaos: $(PYTHON_READY) $(NODE_READY) ## kill and stop workers, restart databases; exact results
	$(PYTHON) -m tests.chaos

bench: $(PYTHON_READY) $(NODE_READY) services ## what the engine costs, each figure beside its yardstick
	$(PYTHON) -m tests.bench --json docs/notes/bench.json

lock: $(PYTHON_READY) ## bring requirements/ and package-lock.json up to date
	tools/need_node
	$(COMPILE) pyproject.toml --group dev --all-extras --upgrade --output-file requirements/dev.txt
	$(COMPILE) tests/services/requirements.in --upgrade --output-file tests/services/requirements.txt
	npm install --package-lock-only
	npm install --prefix tests/services --package-lock-only
	$(PYTHON) tools/strip_npm_lock.py package-lock.json tests/services/package-lock.json

clean: ## remove what the other targets made
	rm -rf .venv node_modules build dist .mypy_cache .ruff_cache .pytest_cache \
		.import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(PYTHON_READY): requirements/dev.txt pyproject.toml
	@test -x $(PYTHON) && $(PYTHON) -m pip --version >/dev/null 2>&1 || { \
		python=$$(tools/find_python) && echo "making .venv with $$python" && \
		"$$python" -m venv --clear .venv; }
	$(PIP) install --quiet --require-hashes --no-deps --requirement requirements/dev.txt
	$(PIP) install --quiet --no-build-isolation --no-deps --editable .
	@touch $@

$(NODE_READY): package-lock.json package.json .npmrc
	@tools/need_node
	npm ci --no-progress
	@touch $@
