# Every target does its own set-up on a machine that has Python 3.11, pip, venv and make.
.DEFAULT_GOAL := help
.PHONY: help setup demo docs up test drills fuzz browser chromium coverage warm check sbom format bench lock clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
SOURCES := setup.py docs/site app core worker migrations tagsmith tests benchmarks tools

# Packages are installed without byte code (see INSTALL), which Python then writes for what it imports. Where it may not,
# every process that starts compiles all it imports: a worker takes 4 s of a core instead of 1.5.
unexport PYTHONDONTWRITEBYTECODE

# Stamps carry the checksum of what they installed, so that a changed lock installs again.
checksum = $(shell cat $(1) 2>/dev/null | cksum | cut -d' ' -f1)
RUNTIME := $(VENV)/runtime-$(call checksum,requirements.txt pyproject.toml setup.py)
DEV := $(VENV)/dev-$(call checksum,requirements.txt requirements-dev.txt pyproject.toml setup.py)

help:  ## List the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: $(DEV)  ## Create .venv with everything for work on the project

demo: $(RUNTIME)  ## Upload, train, tag, promote and roll back in a throw-away stack
	$(BIN)/tagsmith demo

up: $(RUNTIME)  ## Run the whole stack in the foreground
	$(BIN)/tagsmith up

# Tests of one file share a process, and so its fixtures. Files go out in the order of tests/conftest.py: left to itself,
# xdist begins with those of most tests, which are short ones, and ends with one process at a long drill and the others idle.
test: warm chromium $(DEV)  ## Run the whole suite on SQLite, real PostgreSQL, real Redis and in Chromium
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder $(ARGS)

# Two hours in all. Rows that are done are kept, so a run that was interrupted continues: ARGS="killed_worker --times 5"
drills: warm $(DEV)  ## Break a running service in every way, 20 times each, and write docs/reliability.md
	$(BIN)/python -m tests.drills $(ARGS)

fuzz: $(DEV)  ## Fuzz every reader and parser, then every route, on both databases, with keys and without
	$(BIN)/python -m tests.fuzz $(ARGS)

browser: chromium $(DEV)  ## Test only the page, in a real browser
	$(BIN)/python -m pytest -m browser tests/app $(ARGS)

chromium:  ## Install Debian's Chromium, as root or with sudo, if there is no browser
	@sh tests/install_chromium.sh

# The same tests with every process measured, which takes about twice as long. Branches count; compiled kernels do not.
COVERAGE := build/coverage
coverage: warm chromium $(DEV)  ## Run the suite and write which lines and branches no test reaches
	rm -rf $(COVERAGE)
	-$(BIN)/coverage run -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder --timeout 600 $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report > $(COVERAGE)/report.txt
	@tail -n 3 $(COVERAGE)/report.txt
	@echo "What is missed, file by file: $(COVERAGE)/report.txt"

# Compiling needs nothing that tests and checks do: with --jobs it begins while those are still being installed.
warm: $(RUNTIME)  ## Compile every kernel into the cache
	$(BIN)/tagsmith warm

check: $(DEV)  ## Lint, formatting, types, import rules and dependencies
	$(BIN)/ruff check $(wildcard $(SOURCES))
	$(BIN)/ruff format --check $(wildcard $(SOURCES))
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m tools.dependencies

sbom: $(VENV)/bin/python  ## Write the software bill of materials (CycloneDX) to build/sbom.json
	$(BIN)/python -m tools.sbom

format: $(DEV)  ## Format the sources and fix what can be fixed
	$(BIN)/ruff format $(wildcard $(SOURCES))
	$(BIN)/ruff check --fix $(wildcard $(SOURCES))

docs: $(VENV)-docs/installed-$(call checksum,requirements-docs.txt)  ## Build the documentation as a site, in build/docs
	NO_MKDOCS_2_WARNING=1 $(VENV)-docs/bin/mkdocs build --quiet
	@echo "Open build/docs/index.html, or serve it with search: $(PYTHON) -m http.server --directory build/docs"

bench: $(DEV)  ## Measure speed against peers in the same run
	$(BIN)/python -m benchmarks $(ARGS)

# Universal: one lock for Python 3.11 and later on every platform. No header, so that the file names no machine.
LOCK = $(VENV)-lock/bin/uv pip compile --python-version 3.11 --universal --generate-hashes \
	--no-header --quiet --upgrade
lock:  ## Pin the newest versions that fit together, with hashes
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --quiet uv
	$(LOCK) requirements.in requirements-server.in -o requirements.txt
	$(LOCK) --constraint requirements.txt requirements-otel.in -o requirements-otel.txt
	$(LOCK) requirements-dev.in -o requirements-dev.txt
	$(LOCK) requirements-docs.in -o requirements-docs.txt
	rm -rf $(VENV)-lock

clean:  ## Remove everything the targets created, except data
	rm -rf $(VENV) $(VENV)-docs build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find app core worker migrations tests benchmarks tools -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Tagsmith needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

# Wheels only: nothing of the lock is built on the way in. Without byte-compiling, which Python does for what it really
# imports, the installation takes half the time. The project itself is installed in place; the links
# show its packages to type checkers and editors. They are created last: setuptools would take them for the packages.
LINKS := tagsmith/app tagsmith/core tagsmith/migrations tagsmith/worker
INSTALL := $(PIP) install --quiet --no-compile --require-hashes --only-binary :all:
$(RUNTIME): | $(VENV)/bin/python
	$(INSTALL) -r requirements.txt
	rm -f $(LINKS)
	$(PIP) install --quiet --no-deps --no-build-isolation -e .
	for link in $(LINKS); do ln -s ../$${link#tagsmith/} $$link; done
	@rm -f $(VENV)/runtime-*
	@touch $@

# The site has its own environment: nothing of it is needed to run or test.
$(VENV)-docs/installed-%: requirements-docs.txt
	$(PYTHON) -m venv $(VENV)-docs
	$(VENV)-docs/bin/python -m pip --disable-pip-version-check install --quiet --require-hashes --only-binary :all: -r $<
	@rm -f $(VENV)-docs/installed-*
	@touch $@

$(DEV): $(RUNTIME)
	$(INSTALL) -r requirements-dev.txt
	@rm -f $(VENV)/dev-*
	@touch $@
