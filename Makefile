.DEFAULT_GOAL := help

.PHONY: help
help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Tests. `make test` is all that CI runs; each step can be run by itself.

TIMED = @bash -c 'began=$$SECONDS; echo "--- $(1)"; $(1); code=$$?; \
  echo "--- $$((SECONDS - began)) s"; exit $$code'

.PHONY: test test-tools test-style test-rust test-fuzz test-server test-large fuzz

test: test-tools test-style test-rust test-server test-fuzz ## Run all tests that CI runs

test-tools:
	$(call TIMED,scripts/install-test-tools)

test-style: test-tools
	$(call TIMED,cargo fmt --all --check)
	$(call TIMED,cargo clippy --locked --workspace --all-targets -- -D warnings)
	$(call TIMED,.venv/bin/ruff check tests && .venv/bin/ruff format --check tests)

test-rust: test-tools
	$(call TIMED,cargo test --locked --workspace)

test-server: test-tools
	$(call TIMED,cargo build --locked --release -p coffer)
	$(call TIMED,.venv/bin/pytest --durations 10 tests)

test-fuzz: test-tools
	$(call TIMED,scripts/fuzz 5)

test-large: test-tools ## Move objects of gigabytes (needs 110 GB of disk)
	$(call TIMED,cargo build --locked --release -p coffer)
	$(call TIMED,.venv/bin/pytest -m large tests)

fuzz: ## Fuzz every parser for a minute each
	scripts/fuzz 60
