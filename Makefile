# Two commands for a new machine with Python 3.11+ and make: `make demo` and `make test`.
PYTHON ?= python3
DATA_DIR ?= data

.PHONY: demo test test-slow test-browser fuzz lint bench bench-quick bench-engine bench-scale docs clean help

help:
	@echo "make demo          fit a bundled data set with every solver; writes demo_output/"
	@echo "make test          lint, types and tests"
	@echo "make test-slow     the tests that are too slow for every day"
	@echo "make test-browser  the HTML report in headless Chromium; writes report.png"
	@echo "make fuzz          100,000 broken inputs for the readers of data and model files"
	@echo "make bench-quick   time to a true suboptimality against peers, a small grid; DATA_DIR=folder of .npz files"
	@echo "make bench         the same on the full grid, with intercept, float32 and all threads, too (hours)"
	@echo "make docs          the documentation as a web site in site/"
	@echo "make bench-engine  speed and memory of the engine; needs DATA_DIR=folder with rcv1_subsets.npz"
	@echo "make bench-scale   rounds, bytes and seconds on 1 to 8 worker processes, and the cost model; DATA_DIR as above"

demo: .venv-demo/.ready
	.venv-demo/bin/dualfree demo --out demo_output

test: .venv-test/.ready
	.venv-test/bin/ruff check .
	.venv-test/bin/ruff format --check .
	.venv-test/bin/mypy
	.venv-test/bin/python -m pytest --numprocesses 2 --dist loadgroup

test-slow: .venv-test/.ready
	.venv-test/bin/python -m pytest -m slow

# Debian's Chromium, installed if it is not there; the screenshot lands in the current folder.
test-browser: .venv-browser/.ready
	command -v chromium >/dev/null || command -v chromium-browser >/dev/null || apt-get install --yes chromium
	SCREENSHOT=report.png .venv-browser/bin/python -m pytest -m browser tests/report

fuzz: .venv-test/.ready
	.venv-test/bin/python tests/io/fuzz.py --inputs 100000

# Each line adds to the same file and goes on where it was interrupted.
COMPARE = .venv-bench/bin/python -m benchmarks.compare --data-dir $(DATA_DIR)
FULL = --out benchmark_results/full.parquet

bench-quick: .venv-bench/.ready
	$(COMPARE) --quick --fresh --out benchmark_results/quick.parquet

bench: .venv-bench/.ready
	$(COMPARE) $(FULL)
	$(COMPARE) $(FULL) --intercept
	$(COMPARE) $(FULL) --dtype float32
	$(COMPARE) $(FULL) --threads all
	$(COMPARE) $(FULL) --summary-only --plots --markdown benchmark_results/full.md

bench-engine: .venv-bench/.ready
	.venv-bench/bin/python benchmarks/engine.py --data-dir $(DATA_DIR)

bench-scale: .venv-bench/.ready
	.venv-bench/bin/python -m benchmarks.scale --data-dir $(DATA_DIR)

docs: .venv-docs/.ready
	.venv-docs/bin/mkdocs build

# Each environment is made afresh when pyproject.toml changes what it needs.
.venv-demo/.ready: EXTRA = cli
.venv-test/.ready: EXTRA = test
.venv-bench/.ready: EXTRA = bench
.venv-docs/.ready: EXTRA = docs
.venv-browser/.ready: EXTRA = browser
.venv-%/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dualfree needs Python 3.11 or newer; set PYTHON=python3.x")'
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --upgrade pip
	.venv-$*/bin/python -m pip install --quiet --editable '.[$(EXTRA)]'
	touch $@

clean:
	rm -rf .venv-demo .venv-test .venv-bench .venv-browser demo_output
