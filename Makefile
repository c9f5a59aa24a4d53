# Everything works from a bare clone: each target makes .venv when it is not there.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PORT   ?= 8000
# Every supported Python that is installed, on the path or by pyenv; the newest last.
PYTHONS ?= $(shell for minor in 11 12 13 14 15; do \
	for python in python3.$$minor $(HOME)/.pyenv/versions/3.$$minor.*/bin/python3.$$minor; do \
		if $$python -c 'import ensurepip, venv' 2> /dev/null; then echo $$python; break; fi; \
	done; done)
READY  := $(VENV)/.ready
# What make lowest runs: the layers that import packages of others. Some other tests need a newer botocore themselves.
LOWEST_TESTS ?= tests/storage tests/codec tests/values tests/engine tests/packaging/test_extras.py tests/testing/test_mock.py \
	$(foreach name,connection dispatcher lanes listener monitor request response,tests/server/test_$(name).py)
# Tests that start browsers, other clients and backends, and processes to kill. Their long forms have targets of their own.
SUITES := tests/attack tests/browser tests/crash tests/schema_tools tests/sdks \
	tests/examples/test_addresses.py tests/structures/test_sorted_set_redis.py

# Tests of tools and pages: the newest Python is tried without them in .ci/run, and with them by `make matrix`.
TOOLS := $(wildcard tests/advisor tests/bench tests/cli tests/demo tests/design tests/docs tests/examples tests/inference \
	tests/moving tests/schema tests/structures tests/workbench)

# Many tests start processes, each of which would compile the library if nothing kept it compiled.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test quick matrix lowest newest suites long check check-here check-win32 check-darwin check-typing format lock files pictures screenshots docs-serve bench since instructions oracle oracle-requests oracle-library redis postgres crash attack clients schemas browser workbench docs packages image release clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# uv installs in a tenth of pip's processor time. Where it cannot be had, or finds no packages (it does not read pip's
# configuration), pip does the same.
define install # FOLDER,REQUIREMENTS
	$(PYTHON) -m venv $(1)
	@{ $(1)/bin/pip install --quiet --disable-pip-version-check --no-compile uv==0.13.9 && \
		$(1)/bin/uv pip install --quiet --python $(1)/bin/python -r $(2) --editable .; } || \
		{ echo "pip installs them"; $(1)/bin/pip install --quiet --disable-pip-version-check --no-compile -r $(2) --editable .; }
endef

$(READY): requirements/dev.txt pyproject.toml
	@echo "installing Python packages into $(VENV), once; this takes half a minute"
	$(call install,$(VENV),requirements/dev.txt)
	@touch $@

demo: $(READY) ## open the tour: sample tables and the workbench (PORT=8000)
	@$(BIN)/isotone demo --port $(PORT)

test: $(READY) ## run the tests
	$(BIN)/pytest --processes auto $(SUITES:%=--ignore=%) --ignore=tests/typing

quick: $(READY) ## run the tests of the database and the library, without those of tools and pages
	$(BIN)/pytest --processes auto $(SUITES:%=--ignore=%) $(TOOLS:%=--ignore=%) --ignore=tests/typing $(OPTIONS)

matrix: ## run the tests on every supported Python that is installed, each in its own .venv-3.N; and make lowest on 3.11
	@failed=; for python in $(PYTHONS); do \
		echo "make test on $$python"; \
		$(MAKE) --no-print-directory test PYTHON=$$python VENV=.venv-$${python##*python} || failed="$$failed $$python"; \
	done; \
	test -n "$(PYTHONS)" || { echo "no python3.11 or later is installed under such a name"; exit 1; }; \
	case "$(firstword $(PYTHONS))" in *3.11) \
		$(MAKE) --no-print-directory lowest PYTHON=$(firstword $(PYTHONS)) || failed="$$failed, lowest versions";; esac; \
	test -z "$$failed" || { echo "the tests fail on$$failed"; exit 1; }

# Old versions have wheels for the oldest Python alone.
lowest: ## test the wheel with the lowest allowed version of each dependency, in .venv-lowest
	rm -rf .venv-lowest build/lowest
	$(PYTHON) -m venv .venv-lowest
	mkdir -p build/lowest
	.venv-lowest/bin/python -m tests.packaging.lowest > build/lowest/constraints.txt
	.venv-lowest/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/lowest .
	.venv-lowest/bin/pip install --quiet --disable-pip-version-check --constraint build/lowest/constraints.txt \
		"$$(echo build/lowest/*.whl)[$$(.venv-lowest/bin/python -m tests.packaging.lowest --extras)]" pytest hypothesis pynamodb
	.venv-lowest/bin/python -m pytest -W ignore --processes auto $(LOWEST_TESTS)

newest: # print the newest supported Python that is installed
	@echo $(lastword $(PYTHONS))

suites: $(READY) ## run the tests in a browser, of other clients and backends, of attacks and kills: each in its quick form
	$(BIN)/pytest --processes auto $(SUITES)

long: $(READY) ## run all of these tests with three to five times as many random examples
	ISOTONE_LONG=1 $(BIN)/pytest --processes auto

check: $(READY) ## lint, format, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@$(MAKE) --no-print-directory --keep-going --jobs 2 --output-sync check-here check-typing check-win32 check-darwin

check-here: # types on this system, of the library, the tests and the examples
	$(BIN)/mypy
	$(BIN)/mypy examples

check-win32 check-darwin: check-%: # types on another system
	$(BIN)/mypy --platform $* --cache-dir .mypy_cache/$*

check-typing: # the layers, and what type checkers say to programs of users
	$(BIN)/pytest tests/test_layers.py tests/typing

format: $(READY) ## put the code into form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

files: $(READY) ## write what is made of the source: the client's request types, the map of files and the picture of the house, docs/lint.md, docs/design/order-of-checks.md, the methods in docs/store.md
	$(BIN)/python -m tests.client.request_types_writer
	$(BIN)/python -m tests.docs.file_map
	$(BIN)/python -m tests.docs.house_map
	$(BIN)/python -m tests.docs.lint_page
	$(BIN)/python -m tests.docs.order_page
	$(BIN)/python -m tests.docs.store_page

pictures: $(READY) ## draw the pictures of the pages, from the code of the pages
	$(BIN)/python -m tests.docs.pictures

bench: $(READY) ## measure us and our peers in the same run (installs the peers it can)
	$(BIN)/python -m bench.peers
	$(BIN)/python -m bench

since: $(READY) ## compare the speed of the hot paths with an earlier commit (COMMIT=v0.1.0)
	$(BIN)/python -m bench.since $(or $(COMMIT),HEAD)

instructions: $(READY) ## count the instructions of the hot paths, now and at an earlier commit (COMMIT=v0.1.0; needs valgrind)
	$(BIN)/python -m bench.instructions $(or $(COMMIT),HEAD)

oracle: oracle-requests oracle-library ## compare answers with Amazon's DynamoDB Local (needs Java and Maven)

oracle-requests: $(READY) # requests as they are, and what the model makes of them
	$(BIN)/python tests/oracle/local.py fetch
	ISOTONE_ORACLE=1 $(BIN)/pytest --processes 2 tests/oracle tests/model/test_store.py tests/model/test_reading_in_order.py \
		tests/model/test_defaults_in_conditions.py tests/model/test_rewriting_on_dynamodb_local.py \
		tests/model/test_verification.py tests/moving/test_engines.py

oracle-library: $(READY) # structures, examples and the workbench
	$(BIN)/python tests/oracle/local.py fetch
	ISOTONE_ORACLE=1 $(BIN)/pytest --processes 2 tests/structures tests/examples tests/workbench tests/browser -k dynamodb-local

redis: $(READY) ## compare sorted sets with a real Redis server (needs redis-server)
	ISOTONE_REDIS_EXAMPLES=400 $(BIN)/pytest --processes auto -rs tests/structures/test_sorted_set_redis.py

crash: $(READY) ## the long form of the crash tests: a hundred kills
	ISOTONE_KILLS=100 $(BIN)/pytest -s tests/crash

clients: $(READY) ## install the clients that need it, and try every client
	$(BIN)/python tests/sdks/install.py
	$(BIN)/pytest -rs tests/sdks

schemas: $(READY) ## install the tools that deploy and check templates, and try what isotone schema writes
	$(BIN)/python tests/schema_tools/install.py
	$(BIN)/pytest -rs tests/schema_tools

browser: $(READY) ## try what web pages can do, in Chromium (apt-get install chromium, or ISOTONE_CHROMIUM=PATH)
	$(BIN)/pytest -rs tests/browser

workbench: ## rebuild the web application (needs Node 20 or later)
	cd workbench && npm ci --no-fund --no-audit && npm run build

.venv-docs/.ready: requirements/docs.txt pyproject.toml
	@echo "installing the generator of the site into .venv-docs, once"
	$(call install,.venv-docs,requirements/docs.txt)
	@touch $@

screenshots: $(READY) ## take the screenshots of the workbench that the pages show, from the demo (needs Chromium)
	$(BIN)/python -m tests.docs.screenshots

docs: .venv-docs/.ready ## build the site into build/site; a dead link or anchor fails (REPOSITORY=https://… for its links to the source)
	.venv-docs/bin/python -m website.assemble $(REPOSITORY)
	rm -rf build/site
	.venv-docs/bin/zensical build --strict --config-file build/zensical.toml
	@echo "open build/site/index.html"

docs-serve: .venv-docs/.ready ## show the site at http://127.0.0.1:8001, built again when a page changes
	.venv-docs/bin/python -m website.serve $(REPOSITORY)

packages: ## build the wheel and the sdist into dist/, and check them as PyPI does, and the manifests of Kubernetes
	rm -rf dist
	$(PYTHON) -m venv .venv-packages
	.venv-packages/bin/pip install --quiet --disable-pip-version-check build twine check-wheel-contents kubernetes-validate validate-pyproject
	.venv-packages/bin/validate-pyproject pyproject.toml
	.venv-packages/bin/python -m build
	.venv-packages/bin/twine check --strict dist/*
	.venv-packages/bin/check-wheel-contents dist/*.whl
	.venv-packages/bin/kubernetes-validate --strict --quiet deploy/kubernetes.yaml

image: $(READY) ## build the container image and try it, without a hub (as root; apt-get install buildah debootstrap)
	ISOTONE_IMAGE=1 $(BIN)/pytest -rs -s tests/packaging/test_image.py

release: $(READY) ## make a release up to the push: VERSION=0.2.0, and DRY=1 to try it and change nothing
	$(BIN)/python -m tests.packaging.release $(VERSION) $(if $(DRY),--dry-run)

lock: ## pin the development packages again
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet pip-tools
	$(BIN)/pip-compile --quiet --upgrade --extra dev --strip-extras --no-emit-index-url --no-emit-find-links --no-header -o requirements/dev.txt pyproject.toml
	$(BIN)/pip-compile --quiet --upgrade --extra boto3 --strip-extras --no-emit-index-url --no-emit-find-links --no-header -o requirements/docs.txt pyproject.toml requirements/docs.in

postgres: $(READY) ## run storage, operations, structures and histories on a PostgreSQL server that the tests start, kill what runs, fill its disk (KILLS=60)
	ISOTONE_POSTGRES=1 ISOTONE_KILLS=$(or $(KILLS),60) ISOTONE_FAILOVERS=$(or $(FAILOVERS),20) \
		ISOTONE_TRANSACTIONS=$(or $(TRANSACTIONS),20000) $(BIN)/pytest -s tests/storage tests/backends/test_postgres.py tests/backends/test_read_replica.py \
		tests/docs/test_postgres_page.py tests/stateful tests/operations tests/structures $(wildcard tests/crash/test_postgres_*.py)

attack: $(READY) ## the long forms of the attacks and crash tests: flipped bits, stories, fuzzers, kills of each kind, an hour of mixed load
	ISOTONE_LONG=1 ISOTONE_SOAK_SECONDS=3600 ISOTONE_FLIPS=1000 ISOTONE_SEEDS=1000 ISOTONE_KILLS=100 $(BIN)/pytest -s tests/attack tests/crash

clean: ## remove what was built
	rm -rf $(VENV) .venv-docs .venv-lowest .venv-packages build .mypy_cache .pytest_cache .ruff_cache .hypothesis
