# `make study` and `make test` do everything on a fresh Debian 12; the other targets are their parts.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STUDY ?= studies/redis/quick.toml
export CARGO_NET_RETRY ?= 5

# Files of tests, three at a time: no test depends on who else is busy; more would wait for each other.
# In their order: those of many small tests come last, so that no long file is left over at the end.
WORKERS ?= 3
PYTEST ?=

.PHONY: study test test-circumstances setup packages test-packages lint unit meter-test schema reference bench docs clean

study: packages setup
	$(BIN)/ensign run $(STUDY)
	$(BIN)/ensign report $(STUDY) --html

test: packages test-packages setup
	$(MAKE) lint
	$(MAKE) meter-test
	$(MAKE) unit

# The tests again in each circumstance that none may depend on: CIRCUMSTANCES="busy shuffled" for some.
test-circumstances: packages test-packages setup
	tests/circumstances.sh $(CIRCUMSTANCES)

setup: $(VENV)/.ready

$(VENV)/.ready: pyproject.toml meter/Cargo.toml meter/Cargo.lock $(wildcard meter/*/Cargo.toml meter/src/*.rs meter/*/src/*.rs meter/*/src/*/*.rs meter/*/src/*/*/*.rs)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip setuptools setuptools-rust
	$(BIN)/python -m pip install --quiet --editable '.[dev,bench,docs]'
	touch $@

packages:
	./packages.sh packages.txt

test-packages:
	./packages.sh packages-test.txt

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy docs/reference/make.py
	$(BIN)/lint-imports
	cd meter && cargo fmt --all --check
	cd meter && cargo clippy --locked --workspace --all-targets -- -D warnings

meter-test:
	cd meter && cargo test --locked --workspace

unit:
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder $(PYTEST)

# What the meter reads and writes, as JSON Schema, from its types.
schema:
	cd meter && cargo run --quiet --locked -p ensign-protocol --example schema > protocol/schema.json.new
	mv meter/protocol/schema.json.new meter/protocol/schema.json

# The pages of docs/ that are made from the code.
reference: setup
	$(BIN)/python docs/reference/make.py

bench: packages test-packages setup
	$(BIN)/python bench/calibrate.py

docs: reference
	$(BIN)/mkdocs build
	@echo site/index.html

clean:
	rm -rf $(VENV) build dist site meter/target
