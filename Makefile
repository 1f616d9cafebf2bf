# Commands for developers. They need Python 3.11 (or newer) and make. noxfile.py defines what each target does.

.DEFAULT_GOAL := help
.PHONY: help demo check test lint docs unit bench live fuzz attack race soak chance nightly mutations chart screenshots simulation dist wheel-test sbom clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## a JupyterHub with GPUSpawner on a local cluster with simulated GPUs
	@tools/nox --session demo
	@.nox/demo/bin/python -m localcluster demo

check: ## for use while you work: lint, and the quick tests on one Python
	@tools/nox --session check

test: ## all checks that a change must pass before it is merged
	@tools/nox

lint: ## check style, types and layers
	@tools/nox --session lint

docs: ## build the documentation in docs/_build/html
	@tools/nox --session docs

unit: ## the quick tests, on every supported Python of this machine
	@tools/nox --session unit

bench: ## benchmarks, next to a baseline measured in the same run
	@tools/nox --session bench

live: ## the long comparison with the real kube-scheduler
	@tools/nox --session live

fuzz: ## hostile REST bodies, on every Python: make fuzz N=100000 SEED=1
	@tools/nox --session fuzz -- $(if $(N),--count $(N)) $(if $(SEED),--seed $(SEED))

attack: ## a thousand hostile requests to a hub while another user starts a server, loops on each address, attempts on limits, faults of the database: make attack N=1000 SEED=1
	@tools/nox --session attack -- $(if $(N),--requests $(N)) $(if $(SEED),--seed $(SEED))

race: ## a hundred users want fifteen GPUs, and fifty more than their limits, while things go wrong: make race PEOPLE=60 ROUNDS=20 RACES=6 SEED=1
	@tools/nox --session race -- $(or $(PEOPLE),100) $(or $(ROUNDS),5) $(or $(RACES),all) $(if $(SEED),--seed $(SEED))

soak: ## ten thousand starts with faults and a thousand that are cut, then a check that nothing is left over
	@tools/nox --session soak

chance: ## tests with hubs, clusters and browsers again and again: make chance TROUBLE=none|busy|stalls|one-core RUNS=10 TESTS=...
	@tools/nox --session chance -- $(or $(TROUBLE),none) $(or $(RUNS),10) $(TESTS)

nightly: ## everything, on every hub and every Python, part by part; continues a run that was stopped: make nightly PARTS="race soak"
	@tools/nox --session nightly -- $(PARTS)

mutations: ## break the package in known ways, and see that the tests notice: make mutations NAMES=...
	@tools/nox --session mutations -- $(NAMES)

chart: ## install with Helm and the real chart, by each way of the how-to (CONTRIBUTING.md says what it needs)
	@tools/nox --session chart

screenshots: ## take the documentation's screenshots again
	@tools/nox --session screenshots

simulation: ## compare the line with other ways, and draw the documentation's plot again
	@tools/nox --session simulation

dist: ## build the sdist and the wheel in dist/
	@tools/nox --session dist

wheel-test: ## build them, and run the unit, hub and browser tests with the wheel
	@tools/nox --session wheel_test

sbom: ## list in build/sbom.cdx.json what pip installs with the wheel in dist/
	@tools/nox --session sbom

clean: ## remove the environments and build outputs of this work tree
	rm -rf .nox build dist docs/_build *.egg-info .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
