# `make study` and `make test` do everything on a fresh Debian 12; the other targets are their parts.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STUDY ?= studies/redis/quick.toml
export CARGO_NET_RETRY ?= 5
# Hundreds of tests start ensign: compiling it each time would double what that takes.
unexport PYTHONDONTWRITEBYTECODE

# Files of tests, four at a time: many tests race for a fixed time or wait, and no test depends on who else is busy.
# In their order: those of many small tests come last, so that no long file is left over at the end.
WORKERS ?= 4
PYTEST ?=

.PHONY: study test quick test-circumstances setup lock packages test-packages lint size unit meter-test fuzz faults cluster-faults kills lowest coverage wheel wheel-aarch64 schema reference bench docs clean

study: packages setup
	$(BIN)/ensign run $(STUDY)

# Lint, Rust tests and Python tests, at the same time where they can be; the end says how long each took.
test: packages test-packages setup
	$(BIN)/python tests/run_parts.py

# The Python tests with the lowest versions of libraries that pyproject.toml allows: those that start no compiler.
LOWEST := build/lowest
lowest: $(LOWEST)/.ready
	PYTHONPATH=src $(LOWEST)/bin/python -m pytest -q -p no:cacheprovider $(addprefix tests/,$(filter-out toolchains,$(QUICK)))

$(LOWEST)/.ready: pyproject.toml | setup
	rm -rf $(LOWEST)
	$(BIN)/uv venv --quiet --python $(BIN)/python $(LOWEST)
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --output-file $(LOWEST)/requirements.txt pyproject.toml
	$(BIN)/uv pip install --quiet --python $(LOWEST) -r $(LOWEST)/requirements.txt hypothesis jsonschema pytest pytest-timeout
	ln -s $(CURDIR)/$(BIN)/ensign-meter $(LOWEST)/bin/
	cp -r $(VENV)/lib/python3.*/site-packages/ensign-*.dist-info $(LOWEST)/lib/python3.*/site-packages/
	touch $@

QUICK := meter model report/test_golden.py report/test_as_html.py stats/test_pair.py store toolchains variants workloads experiment/test_study_file.py \
	tools/test_diff_studies.py end_to_end/test_wrong_use.py end_to_end/test_bundle.py

# How much of the package the Python tests run: build/coverage/index.html. It takes half as long again as `make unit`.
coverage: setup
	$(MAKE) unit PYTEST="--cov --cov-report=term:skip-covered --cov-report=html:build/coverage $(PYTEST)"

# A minute on two quiet cores, before a commit: style, types, and the tests that neither build nor race.
quick: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile $(addprefix tests/,$(QUICK)) $(PYTEST)

# The tests again in each circumstance that none may depend on: CIRCUMSTANCES="busy shuffled" for some.
test-circumstances: packages test-packages setup
	tests/circumstances.sh $(CIRCUMSTANCES)

setup: $(VENV)/.ready

LOCKS := requirements-build.lock requirements.lock
LOCK := $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
	--no-header --no-annotate --no-emit-index-url

# The versions and hashes of the lock files, and nothing else; the project itself brings no dependency.
INSTALL := $(BIN)/python -m pip install --quiet --require-hashes

# Linked with the C library, as in a wheel: the meter also runs in environments, whose own is another one.
METER_TARGET := $(shell uname -m)-unknown-linux-gnu

$(VENV)/.ready: pyproject.toml $(LOCKS) setup.py meter/Cargo.toml meter/Cargo.lock $(wildcard meter/*/Cargo.toml meter/src/*.rs meter/*/src/*.rs meter/*/src/*/*.rs meter/*/src/*/*/*.rs)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --requirement requirements-build.lock
	$(INSTALL) --requirement requirements.lock
	CARGO_BUILD_TARGET=$(METER_TARGET) RUSTFLAGS="-C target-feature=+crt-static" \
		$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

# Newer versions, for every Python from 3.11 on and each processor, into the lock files.
lock: setup
	$(LOCK) requirements-build.in --output-file requirements-build.lock
	$(LOCK) pyproject.toml --extra dev --extra slurm --extra bench --extra docs --output-file requirements.lock
	$(LOCK) requirements-fuzz.in --output-file requirements-fuzz.lock
	cd meter && cargo update

packages:
	./packages.sh packages.txt

test-packages:
	./packages.sh packages-test.txt

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	cd meter && cargo fmt --all --check
	cd meter && cargo clippy --locked --workspace --all-targets -- -D warnings

size:
	@$(BIN)/python bench/size.py

meter-test:
	cd meter && cargo test --locked --workspace

# Every parser of others' bytes for TIME seconds together: what is found lies in build/fuzz. `make test` has a short part of it.
# TARGETS names some (tests/fuzz/targets.py), METER_TARGETS some of the meter's (meter/fuzz/corpus).
TIME ?= 3600
TARGETS ?=
METER_TARGETS ?=
fuzz: setup
	$(INSTALL) --requirement requirements-fuzz.lock
	PYTHONPATH=tests $(BIN)/python -m fuzz.run $$(($(TIME) * 3 / 4)) $(TARGETS)
	PYTHONPATH=tests $(BIN)/python -m fuzz.meter $$(($(TIME) / 4)) $(METER_TARGETS)

unit:
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --max-worker-restart 0 --dist loadfile --no-loadscope-reorder $(PYTEST)

# Every call that may fail is made to fail (hours; goes on where it was left), and each process is killed at random
# moments. Results are in build/faults/; CAMPAIGN="--scenario bundle" for a part.
CAMPAIGN ?=
faults: test-packages setup
	$(BIN)/python tests/faults/campaign.py $(CAMPAIGN)
	$(BIN)/python tests/faults/meter.py $(CAMPAIGN)

cluster-faults: test-packages setup
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python tests/faults/cluster.py

kills: setup
	$(BIN)/python tests/faults/kills.py $(CAMPAIGN)

# dist/: the sdist and a wheel for any Linux of this architecture, both tried in environments of their own.
wheel: setup
	packaging/build.sh
	$(BIN)/python packaging/try_dist.py

# The same wheel for another architecture, untried; it needs Debian's cross compiler.
wheel-aarch64: setup
	packaging/build.sh aarch64

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
