# make demo    install into $(VENV) and run the demonstration
# make test    install into $(VENV), then lint, check types and run every test
# make quick   the same with the tests that an edit of the library needs: those of tests/ without a slow mark
# make bench   time inference on this machine
# make docs    install what builds the site, build it with warnings as errors, check its links: build/docs/index.html
# VENV, PYTHON and WORKERS (processes that tests are run in) may be set: make test VENV=/elsewhere WORKERS=4

PYTHON ?= python3
VENV ?= .venv
WORKERS ?= 2
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -q
# A stamp is older than these when something must be installed again.
INPUTS := pyproject.toml lab/pyproject.toml constraints-test.txt
# Workers fill the cores: what they start, BLAS and PyTorch, has one thread each. A worker that is done takes tests from
# another. Kernels are compiled before, for else every worker would.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
PYTEST := $(ONE_THREAD) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
NOT_QUICK := slow or browser or kill or distributed or examples

.PHONY: demo test quick checked lint kernels bench docs install clean

demo: $(VENV)/.installed-demo
	$(BIN)/rankwise demo

test: checked
	$(PYTEST)

quick: checked
	$(PYTEST) tests -m 'not ($(NOT_QUICK))'

# Both at a time: each has a core.
checked: install
	$(MAKE) --no-print-directory -j2 lint kernels

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

kernels: install
	$(ONE_THREAD) $(BIN)/python tests/helpers/compile_kernels.py

bench: install
	$(BIN)/rankwise bench inference

# Nothing is downloaded. What is written beside the sources, the pages of the gallery and of the API, git ignores.
docs: $(VENV)/.installed-docs
	$(ONE_THREAD) MPLBACKEND=Agg $(BIN)/python -m sphinx -W --keep-going -b html docs build/docs
	$(BIN)/python docs/check_links.py build/docs

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

$(VENV)/.installed-docs: $(INPUTS) | $(BIN)/python
	$(PIP) install -e '.[docs]' -c constraints-test.txt
	touch $@

clean:
	rm -rf .venv build dist docs/gallery docs/api/generated docs/sg_execution_times.rst src/rankwise.egg-info lab/build lab/src/rankwise_lab.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src lab tests -name __pycache__ -type d -prune -exec rm -rf {} +
