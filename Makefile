# Everything here works on a bare machine with Python 3.11, pip and make.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-all format check bench lock

demo: $(READY)
	$(BIN)/python -m playground.cli.main demo 2>/dev/null || true

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --editable .
	touch $(READY)

test: $(READY)
	$(BIN)/pytest

test-all: $(READY)
	$(BIN)/pytest -m ''

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python tools/build_open_duck.py --check

bench: $(READY)
	$(BIN)/playground bench

# Pins every dependency, the developers' tools included, for all platforms.
lock:
	$(BIN)/pip install --quiet 'uv>=0.9,<1'
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
	  --no-emit-index-url --no-header --output-file requirements.lock
