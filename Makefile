# make run   the store and the wiki, in an environment of their own
# make test  everything that shows they work
# make check the style, the types and the layers
# make compile the hot modules to machine code again, after a change (make test does it too)
# make idl  the interface definitions parsed again, after a change of a .thrift
# make client-suites  the test suites of happybase and aiohappybase against our server

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DATA   ?= data

.PHONY: run test check compile idl client-suites clean help

help:
	@sed -n 's/^# //p' Makefile

$(VENV)/.made: pyproject.toml constraints.txt setup.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Columnar needs Python 3.11 or later; say which with: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo "This Python has no venv module. On Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "Installing into $(VENV), once: one to three minutes, most of it downloads and compiling the hot modules"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.made-dev: $(VENV)/.made
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

run: $(VENV)/.made
	@exec $(BIN)/wikka run --data $(DATA)

test: compile
	@$(BIN)/python -m pytest -n 2 --dist worksteal

compile: $(VENV)/.made-dev
	@$(BIN)/python -m columnar.compiling || true

idl: $(VENV)/.made-dev
	@$(BIN)/python -m columnar.wire.parsing

check: $(VENV)/.made-dev
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/tidy

client-suites: $(VENV)/.made-dev
	@$(BIN)/python tests/client_suites/run

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
