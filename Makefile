# `make demo` and `make test` need nothing but Python 3.11 or newer with pip, and make. Everything else they install
# into .venv and .tox, once; again only when pyproject.toml has changed.

.DEFAULT_GOAL := help
.PHONY: help demo test test-full local-model model-test tox coverage bench bench-peers docs format clean

# The first Python that is new enough and can make a virtual environment; `make PYTHON=...` overrules it.
NEW_ENOUGH := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
ifndef PYTHON
PYTHON := $(shell for p in python3 python3.13 python3.12 python3.11 python3.14 python $$HOME/.pyenv/versions/*/bin/python3; \
	do "$$p" -c '$(NEW_ENOUGH)' 2>/dev/null && { echo "$$p"; break; }; done)
endif

BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
TOX := $(BIN)/python -m tox
# Several environments at a time, as many as there are cores; what the test runs print is shown when each is done.
PARALLEL := run-parallel --parallel auto --parallel-no-spinner --skip-missing-interpreters false
# The longest first, so that all cores stay busy to the end.
LONG := types
CHECKS := docs,lint,asynclint,imports

# In a recipe: puts the Pythons to test on first on PATH and their tox names into $$envs, or ends the recipe.
pythons = envs=$$($(BIN)/python scripts/pythons.py --envs $(1)) && path=$$($(BIN)/python scripts/pythons.py --path) \
	&& export PATH="$$path:$$PATH" && echo "Pythons: $$envs"

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/.demo ## watch an agent stream, call tools and be stopped; no key, no network
	$(BIN)/agentrio demo

test: .venv/.tox ## tests on the oldest and newest Python here, lint, async lint, types, import law, docs
	@$(call pythons,ends) && $(TOX) $(PARALLEL) -e "$(LONG),$$envs,$(CHECKS)"

test-full: .venv/.tox ## every Python here, and the long sweeps on the newest; three quarters of an hour on two cores
	@$(call pythons,full) && $(TOX) $(PARALLEL) -e "$$envs,$(LONG),$(CHECKS)"
	@$(MAKE) --no-print-directory model-test

local-model: .venv/.made ## set up a real model in .local-model: 127 MB are fetched, once
	@$(BIN)/python scripts/local_model/setup.py .local-model

model-test: .venv/.tox local-model ## drive that model on this machine through all three providers
	@$(BIN)/python scripts/local_model/with_server.py .local-model $(TOX) run -e model -- $(ARGS)

tox: .venv/.tox ## one environment: make tox ENV=py313 ARGS="tests/test_x.py -k name"
	@$(call pythons,ends) && $(TOX) run -e "$(ENV)" -- $(ARGS)

coverage: .venv/.tox ## the tests on the oldest and newest Python here, and their branch coverage against its bounds
	@rm -rf .tox/coverage
	@$(call pythons,coverage) && $(TOX) $(PARALLEL) -e "$$envs"
	@$(TOX) run -q -e coverage

bench: .venv/.bench ## measure; writes docs/benchmarks.md
	$(BIN)/python -m benchmarks --write-docs

bench-peers: .venv/.bench ## measure beside other libraries, on the same server; they are installed into .venv
	@test -e .venv/.peers || { $(PIP) --group peers && touch .venv/.peers; } || echo "Not installed; what is there is measured."
	$(BIN)/python -m benchmarks --peers --rounds 3

docs: .venv/.tox ## build the documentation into docs/_build/html
	@$(TOX) run -e docs

format: .venv/.tox ## let ruff mend and format what it can
	@$(TOX) run -q -e format

clean: ## remove everything that these targets made
	rm -rf .venv .tox .local-model build dist docs/_build docs/_generated docs/providers.md .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.made:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer, with venv and pip, is needed and was not found." >&2; exit 1; }
	"$(PYTHON)" -m venv --clear .venv
	$(PIP) --upgrade 'pip>=25.1'
	@touch $@

.venv/.demo: .venv/.made pyproject.toml
	$(PIP) --editable '.[cli]'
	@touch $@

.venv/.tox: .venv/.made pyproject.toml
	$(PIP) --group tox
	@touch $@

.venv/.bench: .venv/.made pyproject.toml
	$(PIP) --editable '.[cli]' --group bench
	@touch $@
