//! The house rules, as tests: see `tests/`.
