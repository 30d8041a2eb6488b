# make demo    install into $(VENV) and run the demonstration
# make test    install into $(VENV), then lint, check types and run every test
# make quick   the same with the tests that an edit of the library needs: those of tests/ without a slow mark
# make bench   time inference on this machine
# make docs    install what builds the site, build it with warnings as errors, check its links: build/docs/index.html
# make minimal  the quick tests with the lowest versions that pyproject.toml declares, in .venv-minimal
# make pythons  the quick tests of the core, the linear and latent rankers and the commands, with every Python that is
#               found and the newest packages for it, without PyTorch, in .venv-python3.10 and so on
# make release  the files of a release in dist, checked
# VENV, PYTHON, WORKERS (processes that tests are run in) and INSTALL_OPTIONS (of pip) may be set:
#               make test VENV=/elsewhere WORKERS=4

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

.PHONY: demo test quick checked lint bench docs minimal pythons release install clean

demo: $(VENV)/.installed-demo
	$(BIN)/rankwise demo

test: checked
	$(PYTEST)

quick: checked
	$(PYTEST) tests -m 'not ($(NOT_QUICK))'

checked: install
	$(MAKE) --no-print-directory -j3 lint kernels-float64 kernels-float32

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

kernels-%: install
	$(ONE_THREAD) $(BIN)/python tests/helpers/compile_kernels.py $*

bench: install
	$(BIN)/rankwise bench inference

# Nothing is downloaded. What is written beside the sources, the pages of the gallery, of the notebooks and of the API, git ignores.
docs: $(VENV)/.installed-docs
	$(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going -b html docs build/docs
	$(BIN)/python docs/check_links.py build/docs

# The lowest versions are tested with Python 3.11.
MINIMAL_PYTHON ?= python3.11
MINIMAL_TOOLS := clarabel h5py hypothesis numcodecs pandas pytest pytest-xdist torchmetrics zarr
minimal:
	$(MINIMAL_PYTHON) -m venv .venv-minimal
	.venv-minimal/bin/python -m pip --disable-pip-version-check -q install -c constraints-minimal.txt \
	    -e '.[boosting,dask,images,parquet,plots,torch]' -e './lab[detection]' $(MINIMAL_TOOLS)
	$(MAKE) --no-print-directory kernels-of tests-of IN=.venv-minimal TESTS=tests

# One that fails does not keep the others from running; the names of those that failed are said at the end.
PYTHONS ?= python3.10 python3.11 python3.12 python3.13
PYTHONS_TOOLS := clarabel h5py hypothesis pandas pytest pytest-xdist zarr
pythons:
	@failed=; for python in $(PYTHONS); do \
	    if ! $$python --version 2> /dev/null; then echo "$$python: not found, left out"; continue; fi; \
	    home=.venv-python$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	    $$python -m venv $$home \
	    && $$home/bin/python -m pip --disable-pip-version-check -q install -e '.[images,parquet,plots]' $(PYTHONS_TOOLS) \
	    && $(MAKE) --no-print-directory kernels-of tests-of IN=$$home \
	        TESTS='tests/core tests/linear tests/latent tests/cli' \
	    || failed="$$failed $$python"; \
	done; if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi

.PHONY: kernels-of tests-of
kernels-of:
	$(ONE_THREAD) $(IN)/bin/python tests/helpers/compile_kernels.py float64 float32

tests-of:
	$(ONE_THREAD) $(IN)/bin/python -m pytest -n $(WORKERS) --dist worksteal -m 'not ($(NOT_QUICK))' $(TESTS)

release: install
	rm -rf dist lab/build
	$(BIN)/python -m build --no-isolation
	$(BIN)/python -m build --no-isolation --wheel --outdir dist lab
	$(BIN)/python -m twine check --strict dist/*

install: $(VENV)/.installed-test

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# Both houses. The sources are used in place (-e), so that an edit needs no new installation.
$(VENV)/.installed-demo: $(INPUTS) | $(BIN)/python
	$(PIP) install $(INSTALL_OPTIONS) -e . -e ./lab -c constraints-test.txt
	touch $@

$(VENV)/.installed-test: $(INPUTS) | $(BIN)/python
	$(PIP) install $(INSTALL_OPTIONS) -e '.[test]' -e './lab[detection]' -c constraints-test.txt
	touch $@

$(VENV)/.installed-docs: $(INPUTS) | $(BIN)/python
	$(PIP) install $(INSTALL_OPTIONS) -e '.[docs]' -e ./lab -c constraints-test.txt
	touch $@

clean:
	rm -rf .venv .venv-* build dist docs/gallery docs/notebooks docs/api/generated docs/sg_execution_times.rst src/rankwise.egg-info lab/build lab/src/rankwise_lab.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src lab tests -name __pycache__ -type d -prune -exec rm -rf {} +
