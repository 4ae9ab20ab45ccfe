# One target per habit. The first one that needs it creates .venv; it is brought up to date when the pins change.
# HOLDFAST_DATA, when set, reaches every command.

PYTHON ?= python3
JOBS ?= 2
ARGS ?=

BIN := .venv/bin
READY := .venv/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq --retries 5

# One thread per process: a second one gains nothing on small networks and collapses beside another job.
export OMP_NUM_THREADS := 1
export OMP_WAIT_POLICY := PASSIVE
export OPENBLAS_NUM_THREADS := 1

.PHONY: help install demo test test-browser pages picture docs bench bench-avalanche reproduce-smoke lint lint-style lint-types lint-imports format clean

help:  ## this list
	@awk -F ':.*##' '/^[a-z-]+:.*##/ {printf "  make %-17s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(READY)  ## create or update .venv

# torch comes first and alone, so that its pin decides which build is taken; setuptools builds the package in place.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; try make PYTHON=python3.11" if sys.version_info < (3, 11) else 0)'
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@echo "Installing into .venv (a few minutes on a slow line) ..."
	@$(PIP) install -c constraints.txt torch setuptools
	@$(PIP) install -c constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@

demo: $(READY)  ## compare five methods on embedded data and write a report
	@$(BIN)/holdfast demo

test: $(READY)  ## all tests and doctests but slow ones and those in a browser; make test ARGS="-m slow" runs the slow
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(ARGS)

test-browser: $(READY)  ## reports and the site in Chromium, which must be there; pictures go to build/screenshots
	HOLDFAST_BROWSER=needed $(BIN)/python -m pytest -m browser tests/report tests/test_docs_site.py $(ARGS)

pages: $(READY)  ## write the numbers of docs/results/ into the pages; make pages ARGS=--check only looks
	$(BIN)/python docs/fill.py $(ARGS)

picture: $(READY)  ## docs/assets/report.png, the README's picture, from the demo's report; needs Chromium
	@out=$$(mktemp -d); trap 'rm -rf "$$out"' EXIT; \
	$(BIN)/holdfast demo --quiet --out "$$out/demo" && \
	chromium --headless --no-sandbox --disable-gpu --disable-background-networking --hide-scrollbars \
	    --window-size=1180,1000 --virtual-time-budget=8000 --screenshot="$$out/whole.png" "file://$$out/demo/report.html" 2> /dev/null && \
	$(BIN)/python -c 'import sys; from PIL import Image; Image.open(sys.argv[1]).convert("RGB").quantize(256).save(sys.argv[2], optimize=True)' \
	    "$$out/whole.png" docs/assets/report.png

docs: $(READY)  ## the site, into build/site; index.html opens without a server
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "build/site/index.html"

bench: $(READY)  ## speed against a bare loop and Avalanche, as ratios in one run; needs HOLDFAST_DATA
	$(BIN)/python benchmarks/speed.py $(ARGS)

reproduce-smoke: $(READY)  ## every table and figure that has a recipe, at its smallest, on embedded data
	@out=$$(mktemp -d); trap 'rm -rf "$$out"' EXIT; \
	for id in $$($(BIN)/holdfast reproduce --json | $(BIN)/python -c \
	    'import json, sys; print(*(item["id"] for item in json.load(sys.stdin) if item["data"]))'); do \
	    echo "$$id"; $(BIN)/holdfast reproduce $$id --scale smoke --quiet --out "$$out/$$id" $(ARGS) || exit 1; \
	done

bench-avalanche:  ## create .venv-avalanche, where make bench finds Avalanche
	PYTHON=$(PYTHON) sh benchmarks/avalanche_env.sh .venv-avalanche

lint: lint-style lint-types lint-imports  ## everything that is checked without running

lint-style: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

lint-types: $(READY)
	$(BIN)/mypy

lint-imports: $(READY)
	$(BIN)/lint-imports

format: $(READY)  ## sort imports, mend what ruff can, format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:  ## remove caches and build leftovers; .venv stays
	rm -rf build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
