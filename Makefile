# Every target sets up what it needs: a machine with Python (>= 3.11), pip and make is enough.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# One BLAS thread per test process: two processes with two threads each only get in their way.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help install demo test test-arithmetic test-statistical test-wheel tutorials docs docs-serve lint format bench streaming scaling genome-scale accuracy coverage \
	audit membership recovery stress mutants figures figures-quick tuning diffprivlib genomics-tools test-experiments clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 20

$(VENV)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

install: $(VENV)/.installed ## make .venv with everything the other targets use

# PyTorch and Opacus, for the paper's experiments only.
$(VENV)/.experiments: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[experiments]'
	@touch $@

# Zensical and Jupyter, for the documentation site only.
$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@touch $@

# diffprivlib needs an older scikit-learn than primo, so it lives apart.
.venv-diffprivlib/.installed: baselines/diffprivlib_requirements.txt
	$(PYTHON) -m venv .venv-diffprivlib
	.venv-diffprivlib/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

diffprivlib: .venv-diffprivlib/.installed ## the environment of one baseline of the figures

# Programs that tests hand our files to; they need older libraries than primo.
.venv-gwas-ssf/.installed: tests/external/gwas_ssf_requirements.txt
	$(PYTHON) -m venv .venv-gwas-ssf
	.venv-gwas-ssf/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

.venv-pgscatalog/.installed: tests/external/pgscatalog_requirements.txt
	$(PYTHON) -m venv .venv-pgscatalog
	.venv-pgscatalog/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

genomics-tools: .venv-gwas-ssf/.installed .venv-pgscatalog/.installed ## gwas-ssf and pgscatalog-utils, for tests

demo: install ## fit 1001 private regressions on a simulated cohort and compare
	$(BIN)/python -m experiments.demo

test: install ## the quick tests (a few minutes on two cores)
	$(PYTEST) -n 2 --dist worksteal -m "not statistical and not wheel"

# Results of linear algebra differ between machines in their last digits, and numba is optional: what touches
# arithmetic is run again with the kernels of processors without AVX-512, and without compiled loops.
ARITHMETIC := tests/released tests/wall tests/forecast tests/privacy tests/rows/test_kernels.py \
	tests/rows/test_genotype_products.py tests/rows/test_moments.py tests/rows/test_quantise.py \
	tests/rows/test_block_moments.py \
	tests/rows/sources/tabular/test_compiled.py tests/workflow/test_variants.py tests/workflow/test_extension.py \
	tests/workflow/test_covariance_origins.py tests/workflow/test_predict.py \
	tests/test_regressor.py tests/report/test_page.py tests/audit/test_game.py tests/attacks \
	tests/baselines/test_least_squares.py tests/baselines/test_noise.py tests/baselines/test_interface.py

test-arithmetic: install ## the tests of arithmetic with AVX2 kernels and without numba's compiled loops
	NUMBA_DISABLE_JIT=1 OPENBLAS_CORETYPE=Haswell $(PYTEST) -n 2 -m "not statistical" $(ARITHMETIC)

test-statistical: install ## distribution tests of the sampler (minutes)
	$(PYTEST) -n 2 -m statistical

tutorials: $(VENV)/.docs ## execute the tutorials, with their output in build/tutorials (a minute or two)
	OMP_NUM_THREADS=1 $(BIN)/python -m experiments.site.tutorials

docs: tutorials ## the documentation site, in build/site; fails on a broken link or anchor
	$(BIN)/python -m experiments.site.assemble
	$(BIN)/zensical build --strict --clean
	$(BIN)/python -m experiments.site.check
	@echo "The site is in build/site; make docs-serve shows it."

docs-serve: docs ## show the site at http://127.0.0.1:8000 (stop it with Ctrl-C)
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/site 8000

test-wheel: install ## build the wheel; try it in empty environments with each extra alone (two minutes)
	$(PYTEST) -m wheel tests/packaging

lint: install ## ruff, mypy --strict, and the walls between packages (.importlinter)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: install ## let ruff rewrite the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install ## speed and memory, as ratios measured in one run (several minutes)
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.public_side
	$(BIN)/python -m benchmarks.streaming

streaming: install ## the same peak memory for 1, 4 and 16 GB, and a million rows (needs 20 GB of disk)
	$(BIN)/python -m benchmarks.streaming --full

scaling: install ## cost against n, l and d; draws docs/scaling.svg
	$(BIN)/python -m benchmarks.scaling --scale 4 --plot

genome-scale: install ## time and memory from a .bed of thousands of variants; draws docs/genome-cost.svg
	$(BIN)/python -m benchmarks.genome_scale --n 20000 --d 8000 --plot

accuracy: install ## R² against the oracle and of all variants; rewrites docs/accuracy.md (half an hour)
	$(BIN)/python -m benchmarks.accuracy --write
	$(BIN)/python -m benchmarks.protections --write
	$(BIN)/python -m benchmarks.norms --write
	$(BIN)/python -m benchmarks.variants

coverage: install ## do 95 % intervals cover 95 %? over a grid of cells (ten minutes)
	$(BIN)/python -m benchmarks.coverage
	$(BIN)/python -m benchmarks.coverage_rounds
	$(BIN)/python -m benchmarks.marginal

stress: install ## is the default ever far behind the plainest estimator? rewrites docs/stress.md (half an hour)
	$(BIN)/python -m benchmarks.stress --write

audit: install ## attack the real program: lower bounds on epsilon (many minutes)
	$(BIN)/python -m benchmarks.audit

membership: install ## membership attack on real genotypes; rewrites docs/membership.md (minutes)
	$(BIN)/python -m experiments.membership --write

recovery: install ## genotypes recovered from statistics of many outcomes; rewrites docs/recovery.md (minutes)
	$(BIN)/python -m experiments.recovery --write

figures: $(VENV)/.experiments diffprivlib ## every figure of the paper; rewrites docs/reproduction.md (hours)
	$(BIN)/python -m experiments.figures

figures-quick: $(VENV)/.experiments ## the same, small, into build/figures-quick (minutes)
	$(BIN)/python -m experiments.figures --quick

tuning: $(VENV)/.experiments ## tune DP-SGD on simulated data of its own (many minutes)
	$(BIN)/python -m experiments.tuning

test-experiments: $(VENV)/.experiments diffprivlib ## the tests of baselines and figures, with PyTorch
	$(PYTEST) -n 2 tests/baselines tests/experiments

mutants: install ## break the guarantee on purpose and see the tests notice (minutes)
	$(BIN)/python -m benchmarks.mutants

clean: ## remove what the other targets made
	rm -rf $(VENV) .venv-diffprivlib .venv-gwas-ssf .venv-pgscatalog build dist .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
