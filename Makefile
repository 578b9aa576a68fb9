# Everything here works on a bare machine with Python 3.11, pip and make: the first
# target to run makes .venv from the lock file.
PYTHON ?= python3.11
BIN := .venv/bin
READY := .venv/.ready
DEMO := runs/demo-$(shell date +%Y%m%d-%H%M%S)

.PHONY: demo test test-all format check bench lock

# The main job on two CPU cores: train, evaluate, run, look. An evaluation that fails
# its policy exits with 1, and the demo goes on.
demo: $(READY)
	$(BIN)/playground train open_duck_joystick --preset quick --out $(DEMO)
	$(BIN)/playground evaluate $(DEMO)/policy.onnx --out $(DEMO)/evaluation \
	  --seeds 1 --seconds 10 --no-randomize || test $$? -eq 1
	$(BIN)/playground infer $(DEMO)/policy.onnx --headless --seconds 10 \
	  --command 0.1 0 0
	$(BIN)/playground infer $(DEMO)/policy.onnx --seconds 5 --command 0.1 0 0 \
	  --video $(DEMO)/walk.mp4
	@echo
	@echo "The demo lies in $(DEMO):"
	@echo "  policy.onnx               the trained policy, with its contract inside"
	@echo "  metrics.csv, tensorboard/ how it learned"
	@echo "  evaluation/evaluation.md  reached against commanded velocity, falls, effort"
	@echo "  evaluation/*.png          the same as plots"
	@echo "  walk.mp4                  the duck, asked to walk forward at 0.1 m/s"

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
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
lock: $(READY)
	$(BIN)/pip install --quiet 'uv>=0.9,<1'
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal \
	  --python-version 3.11 --no-emit-index-url --no-header \
	  --output-file requirements.lock
