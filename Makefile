# Everything that the book needs is made from here; `make` alone lists the targets.

PORT ?= 8000
PAGE := _build/html/index.html
BIN := .venv/bin
# What `ruff format` keeps in shape; a chapter's cells are wrapped by hand.
FORMATTED := code tests tools sphinx_ext benchmarks
# A test whose process was lost, as one that never ends loses it, is run once more. One that fails is
# not: no message matches the pattern.
ONCE_MORE := --reruns 1 --only-rerun '(?!)'
# A number in the text that disagrees with its cell fails the build and the tests; a reader at
# work in a notebook gets a line that says so instead.
export WORKED_EXAMPLES_STRICT := 1

.DEFAULT_GOAL := help
.PHONY: help book serve pdf zip test lint bench links newest colab repository clean

help:  ## this list
	@sed -n 's/^\([a-z]*\):.*  ## /\1\t/p' $(MAKEFILE_LIST) | while IFS='	' read -r name text; do \
	  printf '  make %-11s %s\n' "$$name" "$$text"; done

book: .venv/book-ready  ## build the site in _build/html; the first time this makes .venv as well
	@$(BIN)/python tools/runtime.py
	@$(BIN)/python tools/model.py
	@$(BIN)/python tools/eight_bits.py
	@$(BIN)/python -m tools.lite
	@echo "Building the book; chapters whose code has changed are executed."
	@$(BIN)/jupyter-book build . --quiet -W --keep-going
	@echo "The first page: $(CURDIR)/$(PAGE)"
	@echo "Its controls compute when a web server sends it: make serve"

pdf: .venv/test-ready book  ## print the whole book, and offer it on the site
	@$(BIN)/python tools/browser.py
	@$(BIN)/python tools/pdf.py
	@$(BIN)/jupyter-book build . --quiet -W --keep-going

serve: book  ## build, and serve the site on this machine (PORT=8000)
	@$(BIN)/python tools/serve.py --port $(PORT)

zip: book  ## pack the site into one archive, which works in a room without a network
	@$(BIN)/python -m tools.offline

test: .venv/test-ready book  ## build, and run every test: code, chapters, site
	@$(BIN)/python tools/browser.py
	@$(BIN)/python -m pytest -n 2 --dist worksteal $(ONCE_MORE)

lint: .venv/test-ready  ## check the style of the code and of the chapters' cells
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check $(FORMATTED)

bench: .venv/test-ready book  ## measure kernels, explorers, command line, pages and build (ONLY=kernels)
	@$(BIN)/python -m benchmarks $(ONLY)

links: book  ## follow every link to other sites
	@rm -rf _build/linkcheck
	@$(BIN)/jupyter-book build . --builder custom --custom-builder linkcheck --keep-going || true
	@$(BIN)/python tools/links.py

newest: .venv/made  ## build and test with the newest version of everything; FIRST=... is installed first
	@$(BIN)/python tools/environments.py newest $(if $(FIRST),--first $(FIRST))

colab: .venv/made  ## run the chapters with what Colab holds; LIST=... names another list
	@$(BIN)/python tools/environments.py colab $(if $(FIRST),--first $(FIRST)) $(if $(LIST),--list $(LIST))

repository: .venv/made  ## say where the book is published: make repository URL=https://... [BRANCH=main]
ifeq ($(origin URL),undefined)
	@echo "make repository needs an address: make repository URL=https://github.com/OWNER/NAME" >&2; exit 2
else
	@$(BIN)/python tools/repository.py set "$(URL)" $(if $(BRANCH),--branch "$(BRANCH)")
endif

clean:  ## delete what was built, and keep .venv
	rm -rf _build

# --- set-up -------------------------------------------------------------------------------------

# The first Python on PATH from 3.11 to 3.13 that can make virtual environments; PYTHON=... names
# another. A recipe and no $(shell): only the one who has no .venv yet needs to have it.
.venv/made:
	@if [ -n "$$PYTHON" ]; then set -- "$$PYTHON"; \
	  else set -- python3 python3.13 python3.12 python3.11 python; fi; \
	for python; do \
	  if "$$python" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	      2>/dev/null; then \
	    echo "Making .venv with $$("$$python" --version)."; \
	    "$$python" -m venv .venv && touch $@; exit $$?; \
	  fi; \
	done; \
	echo "The book needs Python 3.11, 3.12 or 3.13 with its venv module (Debian: apt install python3-venv), and found none$${PYTHON:+ at $$PYTHON}; PYTHON=/path/to/python names one." >&2; \
	exit 1

.venv/book-ready: requirements.txt pyproject.toml | .venv/made
	@echo "Installing what requirements.txt pins (the first time: some minutes)."
	@$(BIN)/python -m pip install --disable-pip-version-check -r requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.venv/test-ready: requirements-test.txt .venv/book-ready
	@echo "Installing what the tests need."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt -r requirements-test.txt
	@touch $@
