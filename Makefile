# `make help` says what there is.

CARGO ?= cargo
# Options for `coffer serve`, as in: make run ARGS="--data /srv/coffer"
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help deps build run

help: ## say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

deps:
	@scripts/install-build-tools

build: deps ## build the program: target/release/coffer
	$(CARGO) build --release --locked -p coffer

run: build ## install what is missing, build, and serve S3 at https://127.0.0.1:9000
	@exec target/release/coffer serve $(ARGS)
