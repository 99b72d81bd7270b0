# One command for each thing. `make chat` to hold a conversation, `make test` to prove everything.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SHARED ?= ../shared
unexport PYTHONDONTWRITEBYTECODE  # else each of the many processes that tests start compiles everything anew

.PHONY: chat serve demo pictures test lint types architecture tests format lock clean bench-turn bench-summary bench-facts bench-recall \
	bench-recall-cost bench-calls bench-server bench-streams bench-watch soak

chat: $(READY)
	@$(BIN)/nitka chat

serve: $(READY)
	@$(BIN)/nitka serve --make-key

demo: $(READY)
	@$(BIN)/nitka demo

test: lint types architecture tests

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/mypy

architecture: $(READY)
	$(BIN)/lint-imports

# Three at a time, on two processors too: tests of processes wait more than they work. A file goes to one of them, in
# the order of tests/conftest.py: what its tests share is made once.
tests: $(READY)
	$(BIN)/pytest -q -n 3 --dist loadfile --no-loadscope-reorder -m 'not alone'
	$(BIN)/pytest -q -m alone tests/acceptance

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The screenshots of the READMEs, taken anew.
pictures: $(READY)
	$(BIN)/python -m tests.browser.inspecting docs/images

bench-turn: $(READY)
	$(BIN)/python -m benchmarks.turn --floor $(SHARED)/bench/floor.py

bench-summary: $(READY)
	$(BIN)/python -m benchmarks.summary $(SHARED)/data/summary_dev.jsonl --scorer $(SHARED)/bench/score_summary.py

bench-facts: $(READY)
	$(BIN)/python -m benchmarks.facts $(SHARED)/data/facts_dev.jsonl --scorer $(SHARED)/bench/score_facts.py

bench-recall: $(READY)
	$(BIN)/python -m benchmarks.recall $(SHARED)/data/locomo_dev.json --cache .bench

bench-recall-cost: $(READY)
	$(BIN)/python -m benchmarks.recall_cost

bench-calls: $(READY)
	$(BIN)/python -m benchmarks.calls

bench-server: $(READY)
	$(BIN)/python -m benchmarks.server

bench-watch: $(READY)
	$(BIN)/python -m benchmarks.watch --shared $(SHARED)

bench-streams: $(READY)
	$(BIN)/python -m benchmarks.streams

soak: $(READY)
	$(BIN)/python -m benchmarks.soak

# Everything that is tested is pinned in requirements.lock; `make lock` renews it.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'nitka needs Python 3.11 or later: make PYTHON=python3.12 ...' >&2; exit 1; }
	@echo 'Setting up $(VENV); this takes a minute or two, once.'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

lock:
	$(BIN)/uv pip compile --quiet pyproject.toml --all-extras --group dev --universal --no-emit-index-url \
		--no-header --no-annotate --output-file requirements.lock

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
