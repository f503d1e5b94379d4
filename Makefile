# One entry for everything. Each target works alone on a fresh Debian 12 with git and make: it installs the
# packages it needs, configures, builds and runs.

PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
STRESS ?= 10

packages = scripts/install-packages
build = cmake --preset $(1) $(2) && cmake --build --preset $(1) -j $(JOBS)
run-tests = ctest --preset $(1) -j $(JOBS)

.PHONY: help demo test test-fast test-all tsan stress long fuzz bench install format format-check docs docs-check lint clean

help: ## lists the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1: /p' $(MAKEFILE_LIST) | awk -F': ' '{printf "make %-12s %s\n", $$1, $$2}'

demo: ## trains a network in a fifth of its memory, with a disk behind it, and shows what that cost
	$(packages) build
	$(call build,release) --target demo
	build/release/bin/demo

test: format-check test-fast docs-check ## all tests, plain and with the address and undefined sanitizers
	$(call build,asan)
	$(call run-tests,asan)

test-fast: ## all tests of the release build
	$(packages) build torch data
	$(call build,release)
	$(call run-tests,release)

test-all: test tsan stress long fuzz lint ## test, thread sanitizer, long stress and training, fuzzing and clang-tidy

tsan: ## all tests with the thread sanitizer
	$(packages) build torch data
	$(call build,tsan)
	$(call run-tests,tsan)

stress: ## the release tests with STRESS (10) times the random operations
	$(packages) build torch data
	$(call build,release)
	TERRACE_STRESS=$(STRESS) $(call run-tests,release)

long: ## the training that takes minutes, to a good accuracy
	$(packages) build data
	$(call build,release)
	TERRACE_LONG=1 $(call run-tests,release) -R LongTraining

fuzz: ## every fuzzer for FUZZ_SECONDS (60)
	$(packages) build fuzz
	$(call build,fuzz)
	scripts/fuzz $(FUZZ_SECONDS)

bench: ## measures one claim (NAME=mover ARGS=--quick); without NAME lists the claims
	@bench/run $(NAME) $(ARGS)

install: ## the library, headers and program to PREFIX (/usr/local)
	$(packages) build
	$(call build,release) --target terrace terrace_program
	cmake --install build/release --prefix $(abspath $(PREFIX))

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
	cmake --preset release
	scripts/lint

clean: ## removes everything built
	rm -rf build
