# make run   sets up .venv if needed, then runs the daemon on 127.0.0.1:44772 (FLAGS="--port 8080 ...")
# make test  sets up .venv if needed, then everything that proves it
# make bench prints ratios against floors measured in the same run (EXECD_PEER_URL: against a peer too)
# make lock  pins what pyproject.toml allows, with hashes

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
FLAGS ?=

.PHONY: run test bench lock

run: $(VENV)/run.stamp
	$(BIN)/python -m execd --host 127.0.0.1 $(FLAGS)

test: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest $(FLAGS)

bench: $(VENV)/test.stamp
	$(BIN)/python -m benchmarks $(FLAGS)

lock: $(VENV)/test.stamp
	$(BIN)/pip install --quiet pip-tools
	$(BIN)/pip-compile --quiet --generate-hashes --strip-extras --no-emit-index-url --no-emit-trusted-host \
		--output-file requirements/runtime.txt pyproject.toml
	$(BIN)/pip-compile --quiet --generate-hashes --strip-extras --no-emit-index-url --no-emit-trusted-host \
		--extra test --constraint requirements/runtime.txt --output-file requirements/test.txt pyproject.toml

$(VENV)/run.stamp: requirements/runtime.txt
	@echo "setting up $(VENV), once (about half a minute)"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/runtime.txt
	touch $@

$(VENV)/test.stamp: requirements/test.txt
	@echo "setting up $(VENV) with the tools for tests, once (about a minute)"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/test.txt
	touch $@ $(VENV)/run.stamp
