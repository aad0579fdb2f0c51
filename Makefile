# Every target sets itself up: it needs Linux, Python 3.11 or newer, git and make, no more.
# `make PYTHON=/path/to/python3 ...` picks the interpreter.

PYTHON ?=
RUN_EXTRAS := cli,zmq
# With "testing" comes a Java for machines that have none.
SPARK_EXTRAS := cli,zmq,spark,testing
TEST_EXTRAS := cli,testing,zmq,grpc,kafka,arrow,spark,balance,lab,metrics

# Most tests wait more than they compute; those of one file share brokers and stay together.
WORKERS := -n 2 --dist loadfile

BIN := .venv/bin
export PYTHON

.DEFAULT_GOAL := help
.PHONY: help run run-spark test check proto bench verify soak docs setup-run setup-spark setup-test

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: setup-run ## run the taxi job: instances follow the load (ARGS="--plot taxi.png")
	@echo "[run] $(BIN)/python -m examples.taxi --transport zmq://127.0.0.1:0 $(ARGS)"
	@$(BIN)/python -m examples.taxi --transport zmq://127.0.0.1:0 $(ARGS)

run-spark: setup-spark ## run the taxi job with a stage on Spark, on the mesh and as one query
	@echo "[run-spark] $(BIN)/python -m examples.taxi.spark $(ARGS)"
	@$(BIN)/python -m examples.taxi.spark $(ARGS)

test: check ## everything that a change must pass (ARGS="-k name")
	@echo "[test] pytest $(WORKERS) $(ARGS)"
	@$(BIN)/python -m pytest $(WORKERS) $(ARGS)

check: setup-test ## lint, format, types, import contracts, generated files
	@echo "[check] ruff"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@echo "[check] mypy"
	@$(BIN)/mypy
	@echo "[check] import contracts"
	@out=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$out"; exit 1; }
	@echo "[check] generated code"
	@$(BIN)/python -m tools.generated_code
	@echo "[check] documentation"
	@$(BIN)/python -m tools.documentation --check

proto: ## generate dsp/_pb from proto/
	@tools/proto.sh

bench: setup-test ## run the benchmarks (ARGS="--json")
	@for file in bench/[a-z]*.py; do echo "[bench] $$file $(ARGS)"; $(BIN)/python "$$file" $(ARGS) || exit 1; done

verify: setup-test ## the long explorations of every interleaving
	@echo "[verify] pytest -m verify"
	@$(BIN)/python -m pytest -m verify --timeout 7200 $(ARGS) || { code=$$?; [ $$code -eq 5 ] && echo "[verify] no test has this marker yet" || exit $$code; }

soak: setup-test ## the long runs
	@echo "[soak] pytest -m soak"
	@$(BIN)/python -m pytest -m soak --timeout 7200 $(ARGS) || { code=$$?; [ $$code -eq 5 ] && echo "[soak] no test has this marker yet" || exit $$code; }

docs: setup-test ## write the generated pages, check every link
	@$(BIN)/python -m tools.documentation

setup-run:
	@tools/setup.sh $(RUN_EXTRAS)

setup-spark:
	@tools/setup.sh $(SPARK_EXTRAS)

setup-test:
	@tools/setup.sh $(TEST_EXTRAS) dev
