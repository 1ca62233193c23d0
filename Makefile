# make run   the store and the wiki, in an environment of their own (DATA=data PORT=9090 WEB_PORT=9095 WIKI_PORT=8080 SERVERS=1)
# make test  every kind of test; of seeded and enumerated cases a share, which is printed at the end
# make test-deep  all seeds and all cases, with their files on the disk: after a change to what they cover
# make test-touched  of the deep tests those that the last change touches, the nearest first (BASE=commit WITHIN=600 seconds)
# make check the style, the types and the layers
# make compile the hot modules to machine code again, after a change (make test does it too)
# make wheels  wheels with compiled modules, for each CPython 3.11 to 3.14 of this machine, tried without a compiler (WHEELS=dist)
# make idl  the interface definitions parsed again, after a change of a .thrift
# make client-suites  the test suites of happybase and aiohappybase against our server (SERVERS=1), or against that of a wheel (WHEEL=dist/...)
# make java-suites    HBase's own tests of its Thrift gateways against our server (SERVERS=1); needs a JDK and Maven

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# of make run, client-suites and java-suites; not taken from the environment, where a PORT is often somebody else's
DATA      = data
PORT      = 9090
WEB_PORT  = 9095
WIKI_PORT = 8080
SERVERS   = 1

# of make test-touched: what changed since that commit, else since the branch left main; the time for it
BASE   =
WITHIN = 600

# of make wheels, and of make client-suites; empty: the checkout's program
WHEELS = dist
WHEEL  =

# arguments of pytest for make test, as BUT=--ignore=tests/tidy: all that a make check before it has not run
BUT =

.PHONY: wheels run test test-deep test-touched check style types layers collected compile idl client-suites java-suites clean help

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

$(VENV)/.made: pyproject.toml constraints.txt setup.py make_environment.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Columnar needs Python 3.11 or later; say which with: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) make_environment.py $(VENV)
	@touch $@

$(VENV)/.made-dev: $(VENV)/.made
	@$(PYTHON) make_environment.py $(VENV) dev
	@touch $@

# The store compiles the hot modules beside its work where they are not fresh; COLUMNAR_COMPILED=no run does not.
run: $(VENV)/.made
	@COLUMNAR_COMPILED="$${COLUMNAR_COMPILED:-background}" exec $(BIN)/wikka run \
	  --data "$(DATA)" --store-port $(PORT) --web-port $(WEB_PORT) --port $(WIKI_PORT) --servers $(SERVERS)

# More processes than cores, because tests wait for processes that they have started.
test: compile
	@TMPDIR="$$($(BIN)/python -m tests.support.memory_folder)" $(BIN)/python -m pytest -n 3 --dist worksteal $(BUT)

test-deep: compile
	@COLUMNAR_DEEP=1 $(BIN)/python -m pytest -n 3 --dist worksteal $(BUT)

test-touched: compile
	@$(BIN)/python -m tests.support.touched --base "$(BASE)" --within $(WITHIN)

compile: $(VENV)/.made-dev
	@$(BIN)/python -m columnar.runtime.compiling || true

idl: $(VENV)/.made-dev
	@$(BIN)/python -m columnar.wire.parsing

wheels: $(VENV)/.made-dev
	@$(BIN)/python packaging/make_wheels.py --output "$(abspath $(WHEELS))"

check: style types layers

style: $(VENV)/.made-dev
	$(BIN)/ruff check .

types: $(VENV)/.made-dev
	$(BIN)/mypy

layers: $(VENV)/.made-dev
	$(BIN)/python -m pytest tests/tidy

# The bytecode of the tests, made once: in a new clone each process of make test would make all of it, 20 s in each.
collected: $(VENV)/.made-dev
	@said=$$($(BIN)/python -m pytest --collect-only -qqq) || { echo "$$said"; exit 1; }

client-suites: $(VENV)/.made-dev
	@$(BIN)/python tests/client_suites/run --servers $(SERVERS) $(if $(WHEEL),--wheel "$(WHEEL)")

java-suites: $(VENV)/.made-dev
	@$(BIN)/python -m tests.client_suites java --servers $(SERVERS)

clean:
	rm -rf $(VENV) build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
