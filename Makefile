# Every target does its own set-up first; running one again repeats nothing.
.DEFAULT_GOAL := help
# The targets share build/ and .venv; each uses all cores itself.
.NOTPARALLEL:
.PHONY: help setup setup-run build ballast quickstart test bench lint format sanitize clean

JOBS := $(shell nproc)

help: ## print what each target does
	@echo "make TARGET, where TARGET is"
	@sed -n 's/^\([a-z]*\):[^#]*## /  \1\t/p' Makefile | expand -t 14

quickstart: ballast ## train on real documents, plain and balanced, and print the measured difference
	@tools/quickstart

test: build ## all tests: ctest, then pytest
	@ctest --preset release -j $(JOBS)
	@.venv/bin/python -m pytest tests

bench: setup build/build.ninja ## measure; results go to benchmarks/results
	@cmake --preset release -DBALLAST_BENCHMARKS=ON
	@cmake --build --preset release -j $(JOBS)
	@benchmarks/run

setup: ## install missing Debian packages and the Python packages of .venv
	@tools/setup dev

setup-run:
	@tools/setup run

build: setup build/build.ninja ## compile everything into build/
	@cmake --build --preset release -j $(JOBS)

ballast: setup-run build/build.ninja
	@cmake --build --preset release -j $(JOBS) --target ballast

build/build.ninja: CMakePresets.json | setup-run
	@cmake --preset release

lint: setup ## check includes, format and scripts
	@tools/lint

format: setup ## format all C++ code in place
	@tools/format

sanitize: setup-run build-sanitize/build.ninja ## the core's tests under the address and undefined-behaviour sanitizers
	@cmake --build --preset sanitize -j $(JOBS)
	@ctest --preset sanitize -j $(JOBS)

build-sanitize/build.ninja: CMakePresets.json | setup-run
	@cmake --preset sanitize

clean: ## remove the build folders; .venv, runs and data stay
	rm -rf build build-sanitize
