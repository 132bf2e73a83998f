# The presets and scripts do the work; this file gives them short names.
#
#   make          build/fuse: one static executable
#   make run      build, bake the base image once, train the example in a VM
#   make test     everything, with the end-to-end tests on build/fuse
#   make test-long  the tests that take too long for every time
#   make unit     the unit tests alone
#   make test-vfio  the agent on a real kernel with real VFIO, without a GPU
#   make lint     layers, format, shellcheck, clang-tidy (TIDY=no: without it)
#   make asan     unit tests under AddressSanitizer and UBSan; tsan: ThreadSanitizer
#   make fuzz     each fuzz target for FUZZ_SECONDS
#   make bench    the benchmarks; they report and never fail
#   make install  to $(DESTDIR)$(PREFIX); uninstall: what the last one put there
#   make deb      the Debian package fuse-gpu, in build/package

PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
TIDY ?= yes
EXAMPLE ?= examples/train/Fusefile

.PHONY: build run test test-long test-vfio unit lint format asan tsan fuzz bench install uninstall deb clean

build:
	scripts/setup build
	cmake --preset release
	cmake --build --preset release --target fuse

run: build
	scripts/setup run
	build/fuse image list --output json | grep -q '"name": *"base"' || build/fuse image bake base
	DATA_KEY=$${DATA_KEY:-an-example} build/fuse run $(EXAMPLE) --secret DATA_KEY

test:
	scripts/setup build run test
	cmake --preset release
	cmake --build --preset release
	tests/run release --label-exclude long

test-long: build
	scripts/setup run test
	tests/run release --label-regex long

test-vfio: build
	scripts/setup run
	tests/vfio/run

unit:
	scripts/setup build test
	cmake --preset release
	cmake --build --preset release
	tests/run release --label-regex unit

lint:
	scripts/setup build check
	TIDY=$(TIDY) tests/lint/run

format:
	scripts/setup check
	tests/lint/format.sh --fix

asan tsan:
	scripts/setup build test
	cmake --preset $@
	cmake --build --preset $@
	tests/run $@ --label-regex unit

fuzz:
	scripts/setup build check
	cmake --preset fuzz
	cmake --build --preset fuzz --target fuse_fuzzers
	scripts/fuzz $(FUZZ_SECONDS)

bench: build
	scripts/bench

install: build
	cmake --install build/release --prefix $(PREFIX)

uninstall:
	sed 's|^|$(DESTDIR)|' build/release/install_manifest.txt | xargs -d '\n' rm -f

deb: build
	cpack --config build/release/CPackConfig.cmake -B build/package
	rm -rf build/package/_CPack_Packages

clean:
	rm -rf build
