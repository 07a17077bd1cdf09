# Two commands for a newcomer: `make demo` and `make test`. Both set up their own environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check bench clean

demo: $(VENV)/ready  ## five synthetic hospitals, the main job
	$(BIN)/unpooled demo

test: $(VENV)/ready-dev check  ## lint, format, types, layers, tests, doctests
	$(BIN)/python -m pytest -n auto

check: $(VENV)/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/ready-dev  ## ratios measured side by side
	$(BIN)/python -m benchmarks

$(VENV)/ready: pyproject.toml study/pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable . --editable ./study
	touch $@

$(VENV)/ready-dev: $(VENV)/ready
	$(BIN)/pip install --quiet --constraint constraints.txt $(shell $(PYTHON) -c "import shlex, tomllib; print(shlex.join(tomllib.load(open('pyproject.toml', 'rb'))['dependency-groups']['dev']))")
	touch $@

clean:
	rm -rf $(VENV)
