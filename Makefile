# `make demo` and `make test` download or build missing programs once.
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
LOCK   := requirements/dev.txt
STAMP  := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest
# uv of the machine; without one, a copy in build/
UV     := $(or $(shell command -v uv 2>/dev/null),build/uv/bin/uv)

# Tests start hundreds of Python processes; without bytecode files each of them compiles the project again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMP) ## create .venv with the locked dependencies and the headwater command

$(STAMP): pyproject.toml $(LOCK)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Headwater needs Python 3.11 or newer; name one by `make PYTHON=python3.12 ...`")'
	$(PYTHON) -m venv $(VENV)
	@# pip would compile 7,000 modules with one processor.
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --require-hashes --requirement $(LOCK)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -qq --workers 0 $(VENV)/lib || true # files that are no Python 3 are left out
	@touch $@

.PHONY: test-programs
test-programs: $(STAMP) # what only tests run (10 minutes, once)
	@$(BIN)/python -m tests.toolchain.programs

.PHONY: toolchain
toolchain: $(STAMP) ## download or build the Pulumi CLI, its plugins and Kafka (5 minutes, once)
	@$(BIN)/python -m headwater.toolchain all

.PHONY: demo
demo: toolchain ## demonstrate Headwater on a real Kafka broker
	@$(BIN)/headwater demo

.PHONY: test
test: $(STAMP) ## run all tests except soak tests (20 to 50 minutes)
	@# The tests prepare Spark themselves: to archive its classes takes a minute of one processor in a new checkout.
	@$(BIN)/python -m headwater.toolchain all --without spark
	@$(BIN)/python -m tests.toolchain.programs
	@# Most of these tests wait for brokers, batches and timeouts: three workers for each processor. With two,
	@# the processors were idle for a fifth of the time, and for two fifths at the end. Memory may allow fewer.
	@# At most eight failures run again. The summary shows their tracebacks: each one is a bug (CONTRIBUTING.md).
	$(PYTEST) -m "not soak" --numprocesses $$($(BIN)/python -m tests.workers 3) --dist loadscope \
	    --reruns 2 --max-suite-reruns 8 --rerun-show-tracebacks

.PHONY: durations
durations: $(STAMP) ## keep the durations that the last `make test` recorded: they schedule the next one
	$(BIN)/python -m tests.durations

.PHONY: test-brokers
test-brokers: toolchain ## run the tests of brokers with each supported version of Kafka (half an hour)
	@failed=0; for version in $$($(BIN)/python -c 'from headwater.toolchain.kafka import PINNED_VERSIONS; print(*PINNED_VERSIONS)'); do \
	    echo "Kafka $$version"; \
	    HEADWATER_KAFKA=$$version $(PYTEST) -m every_broker --numprocesses 2 --dist loadscope || failed=1; \
	done; exit $$failed

.PHONY: check
check: $(STAMP) ## check format, lint, types and layers, run quick tests (two to four minutes)
	@$(MAKE) --no-print-directory --jobs 2 check-source check-behavior

.PHONY: check-source
check-source: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: check-behavior
check-behavior: $(STAMP)
	@# Some of these tests wait: one worker more than processors. Each module runs in one worker, the longest first.
	$(PYTEST) -m "not broker and not pulumi and not oracle and not spark and not slow and not soak" \
	    --numprocesses $$($(BIN)/python -c 'import os; print(1 + os.cpu_count())') --dist loadfile --hypothesis-profile=quick

build/uv/bin/uv:
	$(PYTHON) -m venv --clear build/uv
	build/uv/bin/pip install --quiet --disable-pip-version-check uv

.PHONY: lowest
lowest: $(UV) ## run the quick tests with the oldest versions of the dependencies of users
	$(UV) venv --quiet --seed --clear --python 3.11 build/lowest
	$(UV) pip compile --quiet --universal --python-version 3.11 --no-emit-index-url --no-header --no-annotate \
	    --resolution lowest-direct --group dev --extra spark --extra protobuf pyproject.toml --output-file build/lowest.txt
	$(UV) pip install --quiet --python build/lowest --requirement build/lowest.txt
	$(UV) pip install --quiet --python build/lowest --no-deps --no-build-isolation --editable .
	build/lowest/bin/python -m pytest -m "not broker and not pulumi and not oracle and not spark and not slow and not soak" \
	    --numprocesses 3 --hypothesis-profile=quick \
	    --deselect tests/deploy/test_container.py::test_the_locks_contain_what_the_agent_needs \
	    --deselect tests/deploy/test_runtime_image.py::test_the_lock_contains_what_the_runtime_needs

PYTHONS ?= python3.12 python3.13

.PHONY: python-versions
# pyenv starts a program by its name only if this variable names its version; other Pythons ignore it.
python-versions: ## run the quick tests with newer versions of Python; PYTHONS names their programs
	@failed=0; for python in $(PYTHONS); do \
	    echo "$$python"; environment=build/$$(basename $$python); \
	    PYENV_VERSION=$${python##*python} $$python -m venv --clear $$environment && \
	    $$environment/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement $(LOCK) && \
	    $$environment/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . && \
	    $$environment/bin/python -m pytest --numprocesses 3 --hypothesis-profile=quick \
	        --deselect tests/deploy/test_container.py::test_the_locks_contain_what_the_agent_needs \
	        --deselect tests/deploy/test_runtime_image.py::test_the_lock_contains_what_the_runtime_needs \
	        -m "not broker and not pulumi and not oracle and not spark and not slow and not soak" || failed=1; \
	done; exit $$failed

.PHONY: spark-versions
spark-versions: toolchain $(UV) ## run the tests of Spark's private parts, and applications, with its oldest and newest version
	@failed=0; for version in $$($(BIN)/python -c 'from headwater_spark.spark_internals.supported import SUPPORTED_VERSIONS; print(*SUPPORTED_VERSIONS)'); do \
	    echo "PySpark $$version"; \
	    $(UV) venv --quiet --clear build/spark-$$version && \
	    $(UV) pip install --quiet --python build/spark-$$version --requirement $(LOCK) && \
	    $(UV) pip install --quiet --python build/spark-$$version --no-deps pyspark==$$version && \
	    $(UV) pip install --quiet --python build/spark-$$version --no-deps --no-build-isolation --editable . && \
	    HEADWATER_GENERATED_CODE=1 build/spark-$$version/bin/python -m pytest -m "not soak" \
	        tests/runtime/spark_internals tests/runtime/spark/test_application.py \
	        tests/runtime/spark/test_grouped_rows.py tests/runtime/spark/test_idle_queries.py \
	        tests/runtime/spark/test_incomplete_input.py || failed=1; \
	done; exit $$failed

.PHONY: bench
bench: toolchain ## compare speed and memory with plain programs, write the results into the docs (an hour)
	$(BIN)/python -m tests.bench --save

.PHONY: bench-check
bench-check: toolchain ## compare the speed of two commits: make bench-check OLD=COMMIT [NEW=COMMIT]
	$(BIN)/python -m tests.bench.check $(OLD) $(NEW)

.PHONY: new-version
new-version: $(STAMP) ## compare a new version of Kafka (VERSION=4.5.0, default: the latest one on Maven Central) with the newest supported one
	$(BIN)/python -m tests.oracle.new_version $(VERSION)

.PHONY: fuzz
fuzz: test-brokers ## run the tests with each version of brokers, soak tests, and properties with new examples (hours)
	HEADWATER_LIVE_ORACLE=1 HEADWATER_GENERATED_CODE=1 $(PYTEST) -m "soak or hypothesis" --hypothesis-profile=long --timeout=0

.PHONY: coverage
coverage: toolchain test-programs ## list the lines that no test executes, in any process (half an hour)
	$(BIN)/coverage erase
	@# A failed test ends this with its exit code, after the report.
	COVERAGE_FILE=$(CURDIR)/.coverage $(BIN)/coverage run -m pytest -m "not soak" --dist loadscope \
	    --numprocesses $$($(BIN)/python -m tests.workers 2); \
	    passed=$$?; $(BIN)/coverage combine --quiet && $(BIN)/coverage report --skip-covered --show-missing && exit $$passed

.PHONY: mutation
mutation: $(STAMP) ## change decisions in many small ways and check that quick tests notice (an hour)
	$(BIN)/mutmut run --max-children $$($(BIN)/python -c 'import os; print(os.cpu_count())')
	$(BIN)/mutmut results

.PHONY: wheel
wheel: $(STAMP) ## build the wheel in dist/
	$(BIN)/python -m hatchling build -t wheel -d dist

.PHONY: docs
docs: $(STAMP) ## build the documentation site in build/site; fails on broken links
	@$(BIN)/python -m tests.documentation.site

.PHONY: format
format: $(STAMP) ## format the code and apply safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: lock
lock: $(UV) ## update requirements/dev.txt from pyproject.toml
	$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate \
	    --group dev --extra spark --extra protobuf pyproject.toml --output-file requirements/dev.txt

.PHONY: clean
clean: ## delete .venv and the caches of the checkout, not the toolchain cache
	rm -rf $(VENV) mutants .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
