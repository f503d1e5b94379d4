# SPDX-License-Identifier: Apache-2.0
# One entry for everything. Each target works alone on a fresh Debian 12 with git and make: it installs the
# packages it needs, configures, builds and runs.

PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
STRESS ?= 10

packages = scripts/install-packages
build = cmake --preset $(1) $(2) && cmake --build --preset $(1) -j $(JOBS)
# The parts that own memory, run threads or parse what others wrote; tests/PART is the folder.
sanitized_parts = tiers tiers_file heap mover manager exec base machine graph plan data record backends queues lanes ann pages

export JOBS

.PHONY: help demo test test-part test-all sanitize asan tsan stress long fuzz bench install python wheel format format-check docs docs-check lint clean

help: ## lists the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1: /p' $(MAKEFILE_LIST) | awk -F': ' '{printf "make %-12s %s\n", $$1, $$2}'

demo: ## trains a network in a fifth of its memory, with a disk behind it, and shows what that cost
	$(packages) build
	$(call build,release) --target demo
	build/release/bin/demo

test: format-check ## the release build, all its tests and the documents; ends with where the time went
	$(packages) build torch data
	scripts/check-includes
	scripts/spdx --check
	scripts/test release

test-part: ## builds and runs one part's tests (PART=heap)
	$(packages) build
	scripts/test release $(or $(PART),$(error name a folder of tests/, as in make test-part PART=heap))

# Without the checks of null, alignment, object-size and vptr: they double the time to compile, the address sanitizer
# finds most of what they find, and `make asan` has them all. CMakePresets.json leaves out tests that train whole networks
# under many plans: `make asan` has these, too.
sanitize: ## the tests of what owns memory, runs threads or reads files, with the address and undefined sanitizers
	$(packages) build data
	scripts/test sanitize $(sanitized_parts)

test-all: test asan tsan stress long fuzz lint ## test, all tests with sanitizers, stress, the long ones, fuzzing and clang-tidy

asan: ## all tests with the address and undefined sanitizers
	$(packages) build torch data
	scripts/test asan

tsan: ## all tests with the thread sanitizer
	$(packages) build torch data
	scripts/test tsan

stress: ## the release tests with STRESS (10) times the random operations
	$(packages) build torch data
	TERRACE_STRESS=$(STRESS) scripts/test release

long: ## the release tests with what takes minutes: every seed, large networks, training to a good accuracy
	$(packages) build torch data
	TERRACE_LONG=1 scripts/test release

# No fuzzer needs oneDNN, so their build goes without it, and shows that everything but training still works then.
fuzz: ## every fuzzer for FUZZ_SECONDS (60), in a build without oneDNN
	$(packages) build fuzz
	$(call build,fuzz) --target fuzzers terrace_program example_stencil
	scripts/check-without-onednn build/fuzz/terrace
	build/fuzz/bin/example_stencil build/fuzz
	scripts/fuzz $(FUZZ_SECONDS)

bench: ## measures one claim (NAME=mover ARGS=--quick); without NAME lists the claims
	@bench/run $(NAME) $(ARGS)

install: ## the library, headers and program to PREFIX (/usr/local)
	$(packages) build
	$(call build,release) --target terrace terrace_program terrace_c
	cmake --install build/release --prefix $(abspath $(PREFIX))

python: ## the Python package and its library for this user's python3, or for another (PYTHON=/usr/bin/python3)
	$(packages) build
	$(call build,release) --target terrace_c
	scripts/wheel --install $(or $(PYTHON),python3)

wheel: ## the Python package with its library as one file in build/
	$(packages) build
	$(call build,release) --target terrace_c
	scripts/wheel

format: ## formats all sources
	$(packages) format
	scripts/format

format-check: ## fails where a source is not formatted
	$(packages) format
	scripts/format --check

docs: ## copies the examples' marked lines into the README
	scripts/sync-readme

docs-check: ## fails where the documents name what does not exist or show code that no example holds
	$(packages) build
	$(call build,release) --target terrace_program
	scripts/check-docs

lint: ## clang-tidy over all sources
	$(packages) build lint
	cmake --preset lint
	scripts/lint

clean: ## removes everything built
	rm -rf build
