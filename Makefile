# The commands of this repository; `make help` lists them. What they do is in small scripts.

PY := .venv/bin/python

.DEFAULT_GOAL := help
.PHONY: help venv lint format test prove demo demo-stop crds chart examples pictures locks clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: ## .venv from locks/dev.txt, hashes checked; nothing to do when it is up to date
	@.ci/venv

lint: venv ## ruff, mypy strict, import rules
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m mypy
	@.ci/imports

format: venv ## let ruff mend and format the sources
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

test: lint ## lint, then every test; starts a Kubernetes and stops it again (KEEP=1: leaves it up)
	@$(PY) tests/run_all.py

prove: venv ## the long proofs: soak, full enumeration, benchmarks
	@$(PY) tests/run_all.py -m prove

demo: venv ## the example on Kubernetes: CONTEXT=... names a cluster, else one is started
	@$(PY) tests/cluster/demo.py

demo-stop: venv ## remove what `make demo` started
	@$(PY) tests/cluster/demo.py stop

crds: venv ## write crds/, and the chart's copy, anew from operator/wavetank/api
	$(PY) -m wavetank.api.crds crds/
	$(PY) -m wavetank.api.crds charts/wavetank/files/crds/

chart: venv ## write anew what the chart renders to: tests/chart/golden, the demo's manifest
	$(PY) -m wavetank.testing.chart

examples: venv ## write the manifests of examples/ anew from the bundles beside them
	$(PY) examples/manifests.py 01-crm 02-calendar

pictures: venv ## draw docs/images anew from the code's own tables and formulas
	$(PY) docs/images/draw.py

locks: ## resolve dependencies into locks/ (UPGRADE=1: take newest versions)
	@.ci/locks

clean: ## remove caches and .venv; the cluster and what was built for it stay
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find operator tests examples -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
