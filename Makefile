# Everything happens inside $(VENV); no system packages, nothing outside this folder.
# A stamp in the venv remembers each installation, so that it is repeated only when
# pyproject.toml or the lock has changed.

VENV := .venv
ARGS :=
# Name an interpreter to use it: make test PYTHON=/path/to/python3.13. Otherwise the newest found.
PYTHON ?=
CANDIDATES = $(or $(PYTHON),python3.14 python3.13 python3.12 python3.11 python3 python)

IN_VENV = $(VENV)/bin/python
PIP = $(IN_VENV) -m pip --disable-pip-version-check -qq
SUITABLE = import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))

# $(call install,lock,stamps,what): installs the locked dependencies, then the project itself. pip
# checks the hash of every requirement as soon as one has a hash, and an editable project has none:
# hence two steps, and the build backend is in the lock.
define install
	@echo "installing $(3) …"
	@{ $(PIP) install --require-hashes --requirement constraints/$(1).txt && \
	    $(PIP) install --no-deps --no-build-isolation --editable .; } || { \
	    echo "The installation failed; pip's words are above. If a download failed, check the network" \
	        "or your pip configuration and run make again." >&2; exit 1; }
	@touch $(2)
endef

# $(call lock,file,options): every version and hash for Python 3.11 and newer, on every platform.
define lock
	@echo "locking $(1) …"
	@$(IN_VENV) -m uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
	    --no-annotate --no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
	    --group build $(2) pyproject.toml --output-file $(1) $(ARGS)
endef

# $(call timed,name,command): runs it and says how long it took.
define timed
	@echo "$(1) …"; start=$$(date +%s); $(2); status=$$?; took=$$(( $$(date +%s) - start )); \
	printf '%s: %d min %02d s\n' "$(1)" $$(( took / 60 )) $$(( took % 60 )); exit $$status
endef

# Tests start hundreds of processes; without bytecode each would compile the same modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test thorough simulate soak mutants fuzz lint bench bench-soap lock clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' Makefile
	@echo 'Arguments are passed on: make test ARGS="-k containment"'

demo: $(VENV)/.core  ## install the core and run three agencies as real peers
	@$(VENV)/bin/qns demo $(ARGS)

# Every file's tests run on one core, in the order of collection: what a file's tests share is made
# once, and the files that take long do not come last.
PYTEST = $(IN_VENV) -m pytest -n auto --dist loadfile --no-loadscope-reorder
# numba's cache does not notice a change in a module that a compiled function imports from, so each
# state of the packages with compiled functions has a cache of its own.
COMPILED = $(shell cat $$(find qns/cbr qns/pipeline -name '*.py' | sort) | cksum | cut -d ' ' -f 1)
NUMBA_CACHE = $(abspath $(VENV))/numba/$(COMPILED)

test: lint  ## install the tools, then lint and run the test suite on all cores
	@find $(VENV)/numba -mindepth 1 -maxdepth 1 ! -name $(COMPILED) -exec rm -rf {} + 2>/dev/null || true
	$(call timed,pytest,NUMBA_CACHE_DIR=$(NUMBA_CACHE) $(PYTEST) -m "not slow" $(ARGS))

thorough: $(VENV)/.dev  ## the tests with thousands of random examples each: about an hour
	$(call timed,pytest,NUMBA_CACHE_DIR=$(NUMBA_CACHE) QNS_HYPOTHESIS=thorough $(PYTEST) $(ARGS))

# Which seeds: those that ARGS names, or these.
SEEDS = $(if $(filter --seeds% --fresh% --replay%,$(ARGS)),,--seeds 0..20000)

simulate: $(VENV)/.core  ## break 20,000 simulated federations, on all cores, and judge them
	@$(VENV)/bin/qns simulate --jobs 0 $(SEEDS) $(ARGS)

soak: $(VENV)/.dev  ## kill real peers behind a faulty network for half an hour, and judge them
	@$(IN_VENV) -m tests.soak $(if $(filter --minutes%,$(ARGS)),,--minutes 30) $(ARGS)

mutants: $(VENV)/.dev  ## put deliberate bugs into a copy, one at a time, and note what catches them
	@$(IN_VENV) -m tests.mutants --write $(ARGS)

fuzz: $(VENV)/.dev  ## fuzz every decoder that reads bytes from outside, ten minutes each
	@$(IN_VENV) -m tests.fuzz $(if $(filter --seconds%,$(ARGS)),,--seconds 600) $(ARGS)

lint: $(VENV)/.dev  ## ruff check, ruff format --check, mypy
	$(call timed,ruff check,$(IN_VENV) -m ruff check)
	$(call timed,ruff format,$(IN_VENV) -m ruff format --check)
	$(call timed,mypy,$(IN_VENV) -m mypy)

bench: $(VENV)/.bench  ## install what QNS is compared with, then measure
	@$(IN_VENV) -m benchmarks $(ARGS)

bench-soap: $(VENV)/.bench  ## the SOAP server against spyne as it comes and against the limit
	@$(IN_VENV) -m benchmarks --only soap $(ARGS)

# All extras are resolved together first, so that the three locks agree on every version and can be
# installed into one venv.
lock: $(VENV)/.made  ## write the locked dependencies anew; ARGS=--upgrade takes the newest versions
	@$(PIP) install uv
	@cat constraints/*.txt > $(VENV)/lock.txt 2>/dev/null || true
	$(call lock,$(VENV)/lock.txt,--all-extras)
	$(call lock,constraints/core.txt,--constraint $(VENV)/lock.txt)
	$(call lock,constraints/dev.txt,--constraint $(VENV)/lock.txt --extra dev)
	$(call lock,constraints/bench.txt,--constraint $(VENV)/lock.txt --extra bench)

clean:  ## remove the venv and every cache
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find . -name .git -prune -o -type d -name __pycache__ -exec rm -rf {} +

# The larger installations contain the core, so they set its stamp too.
$(VENV)/.core: $(VENV)/.made pyproject.toml constraints/core.txt
	$(call install,core,$@,the core)

$(VENV)/.dev: $(VENV)/.made pyproject.toml constraints/dev.txt
	$(call install,dev,$@ $(VENV)/.core,the core and the development tools)

$(VENV)/.bench: $(VENV)/.made pyproject.toml constraints/bench.txt
	$(call install,bench,$@ $(VENV)/.core,the core and the engines it is compared with)

# A venv whose interpreter has gone (an upgrade, a moved home) is made again, and all in it.
ifneq ($(shell test -x $(IN_VENV) && echo there),there)
.PHONY: $(VENV)/.made
endif

# A suitable venv made by hand is kept. pyenv's shims may exist and yet not start, so every
# candidate is tried.
$(VENV)/.made:
	@if $(IN_VENV) -c 'import pip; $(SUITABLE)' 2>/dev/null; then touch $@; exit 0; fi; \
	seen=; \
	for candidate in $(CANDIDATES); do \
	    if "$$candidate" -c '$(SUITABLE)' 2>/dev/null; then \
	        echo "making $(VENV) with $$("$$candidate" -V) …"; \
	        clear=; test -f $(VENV)/pyvenv.cfg && clear=--clear; \
	        "$$candidate" -m venv $$clear $(VENV) && touch $@; exit; \
	    fi; \
	    version=$$("$$candidate" -V 2>&1) && seen="$$seen $$candidate is $$version;"; \
	done; \
	{ echo "QNS needs Python 3.11 or newer, with its venv and ensurepip modules. Found:$${seen:- none;}"; \
	  echo "Install one (from python.org, with pyenv or uv, or python3 and python3-venv of your system)"; \
	  echo "or name one that you have: make $(or $(MAKECMDGOALS),demo) PYTHON=/path/to/python3.12"; \
	} >&2; exit 1
