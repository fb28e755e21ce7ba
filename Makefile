# The commands of this house. `make demo` and `make test` do all the set-up they need.

SHELL := /bin/bash
.DEFAULT_GOAL := help
CARGO ?= cargo

.PHONY: help setup build demo cluster-demo test lint release install clean

help: ## Show the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what is missing (ffmpeg; for the tests, databases too)
	@scripts/setup test

build: ## Build the binary, as the demo and the tests use it
	@scripts/setup demo
	$(CARGO) build --locked -p palisade-cli

demo: build ## Watch real exports survive a crash and two pauses
	@target/debug/palisade demo

cluster-demo: setup ## The same on three servers, PostgreSQL and an S3 server; one server is killed too
	$(CARGO) build --locked -p palisade-cli
	@scripts/with-cluster sh -c 'exec target/debug/palisade demo --servers 3 \
	  --store "$$PALISADE_CLUSTER_STORE" --artefacts "$$PALISADE_CLUSTER_ARTEFACTS"'

test: setup ## Run all tests
	@scripts/test

lint: ## Formatting, clippy with warnings denied, dependencies
	@scripts/lint

release: ## Build the optimised binary
	$(CARGO) build --locked --release -p palisade-cli

install: release ## Install it to PREFIX/bin (default /usr/local)
	install -Dm755 target/release/palisade "$(DESTDIR)$(or $(PREFIX),/usr/local)/bin/palisade"

clean: ## Remove what was built
	$(CARGO) clean
