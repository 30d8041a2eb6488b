# make demo    install into $(VENV) and run the demonstration
# make test    install into $(VENV), then lint, check types and run every test
# make bench   time inference on this machine
# VENV and PYTHON may be set: make test VENV=/elsewhere PYTHON=python3.12

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
# A stamp is older than these when something must be installed again.
INPUTS := pyproject.toml lab/pyproject.toml constraints-test.txt

.PHONY: demo test lint bench install clean

demo: $(VENV)/.installed-demo
	$(BIN)/rankwise demo

test: lint
	$(BIN)/python -m pytest

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: install
	$(BIN)/rankwise bench inference

install: $(VENV)/.installed-test

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# Both houses. The sources are used in place (-e), so that an edit needs no new installation.
$(VENV)/.installed-demo: $(INPUTS) | $(BIN)/python
	$(PIP) install -e . -e ./lab -c constraints-test.txt
	touch $@

$(VENV)/.installed-test: $(INPUTS) | $(BIN)/python
	$(PIP) install -e '.[test]' -e ./lab -c constraints-test.txt
	touch $@

clean:
	rm -rf .venv build dist src/rankwise.egg-info lab/build lab/src/rankwise_lab.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src lab tests -name __pycache__ -type d -prune -exec rm -rf {} +
