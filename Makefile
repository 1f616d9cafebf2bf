# What people run here, on a machine with Python 3.11 (or newer) and make. noxfile.py says what each target does.

.DEFAULT_GOAL := help
.PHONY: help demo check test lint docs unit bench live fuzz attack race soak nightly screenshots clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## a JupyterHub with GPUSpawner on a local cluster with pretend GPUs
	@tools/nox --session demo
	@.nox/demo/bin/python -m localcluster demo

check: ## while you work: lint, and the quick tests on one Python
	@tools/nox --session check

test: ## everything that has to hold before a change is merged
	@tools/nox

lint: ## style, types and layers
	@tools/nox --session lint

docs: ## the documentation, in docs/_build/html
	@tools/nox --session docs

unit: ## the quick tests, on every Python of this machine
	@tools/nox --session unit

bench: ## figures beside a baseline measured in the same run
	@tools/nox --session bench

live: ## the long comparison with the real kube-scheduler
	@tools/nox --session live

fuzz: ## hostile bodies by the way that REST takes, on every Python: make fuzz N=100000 SEED=1
	@tools/nox --session fuzz -- $(if $(N),--count $(N)) $(if $(SEED),--seed $(SEED))

attack: ## a thousand hostile requests to a hub, and another person's start beside them: make attack N=1000 SEED=1
	@tools/nox --session attack -- $(if $(N),--requests $(N)) $(if $(SEED),--seed $(SEED))

race: ## a hundred people and fifteen GPUs, with everything that can go wrong: make race PEOPLE=60 ROUNDS=20 RACES=6 SEED=1
	@tools/nox --session race -- $(or $(PEOPLE),100) $(or $(ROUNDS),5) $(or $(RACES),all) $(if $(SEED),--seed $(SEED))

soak: ## ten thousand spawns with faults, and what is left of them
	@tools/nox --session soak

nightly: ## KubeSpawner's own tests, with GPUSpawner in its place
	@tools/nox --session kubespawner

screenshots: ## the documentation's pictures, taken anew
	@tools/nox --session screenshots

clean: ## remove environments and build products of this work tree
	rm -rf .nox build dist docs/_build *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
