# The tasks of Bedplate. Each target installs what it needs itself.
#
#   make up [DEMO=1]   build, start the platform, answer one prompt
#   make build         virtual environment and native libraries
#   make test          everything that CI runs
#
# `make` targets are safe to repeat: stamps in .stamps/ hold what is done.

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --no-input
STAMPS := .stamps

# The local settings of pip stay as they are, except for folders of files that
# the hashes were not made of.
unexport PIP_FIND_LINKS

.PHONY: venv dev build test
.DEFAULT_GOAL := build

$(STAMPS)/system: tools/need.sh
	@mkdir -p $(STAMPS)
	@tools/need.sh gcc=gcc g++=g++ cmake=cmake ninja=ninja-build $(PYTHON)=python3
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || tools/need.sh python3-venv
	@touch $@

$(PY): $(STAMPS)/system
	@test -x $@ || $(PYTHON) -m venv $(VENV)
	@touch $@

$(STAMPS)/run: requirements/build.txt requirements/run.txt | $(PY)
	$(PIP) install --quiet --no-deps --require-hashes -r requirements/build.txt -r requirements/run.txt
	@touch $@

$(STAMPS)/dev: requirements/dev.txt $(STAMPS)/run
	$(PIP) install --quiet --no-deps --require-hashes -r requirements/dev.txt
	@touch $@

venv: $(STAMPS)/run

dev: $(STAMPS)/dev

build: $(STAMPS)/run
	@$(PIP) install --quiet --no-build-isolation --no-deps -e .

test: dev build
	@$(PY) -m pytest || { code=$$?; [ $$code -eq 5 ] && exit 0; exit $$code; }
