# The commands of the project; `make help` lists them. The build itself is CMake's (CMakePresets.json).
PRESET ?= release
JOBS ?= $(shell nproc)
TEST_JOBS ?= $(shell expr $(JOBS) + 2)
TORCH_BUILD ?=
TORCH_INDEX_URL ?=
DEMO_FLAGS ?=
KILLS ?= 10000
NODE_FAULTS ?= 800
CLUSTER_FAULTS ?= 200
SOAK_FLAGS ?=
PREFIX ?= /usr/local
BENCH_FLAGS ?=
SECONDS ?= 60
TESTS ?= *
PYTHONS ?=
# What pip finds beside the versions that `make setup` installs.
TORCH_VERSIONS ?= 2.11.0 2.12.1 2.14.1 2.15.0
ARROW_VERSIONS ?= 25.0.1
# What `make setup` installs.
torch_version := $(shell sed -n 's/^readonly torch_version="\(.*\)"/\1/p' tools/setup.sh)
FUZZERS ?= $(patsubst tests/fuzz/%_fuzz.cc,%,$(wildcard tests/fuzz/*_fuzz.cc))
export TORCH_BUILD TORCH_INDEX_URL

build_dir := build/$(PRESET)
# make's own default of CXX is not what anybody asked for.
ifneq ($(origin CXX),default)
export CXX
compiler := "-DCMAKE_CXX_COMPILER=$(CXX)"
endif
# What the goals need beside what a build needs, so that `make demo` installs only that.
setup_groups := $(if $(filter asan tsan coverage,$(PRESET)),sanitizers) $(if $(filter build test test-all unit test-gpu fuzz bench-peers,$(MAKECMDGOALS)),tests) \
  $(filter docs,$(MAKECMDGOALS)) $(if $(filter package release wheel test-wheel,$(MAKECMDGOALS)),package)
# A folder may have spaces in its name; zsh leaves a ~ as it is.
prefix = $(if $(filter ~/%,$(firstword $(PREFIX))),$(HOME)$(patsubst ~/%,/%,$(PREFIX)),$(PREFIX))
cxx_files = $(shell find include src python examples tests benchmarks -name '*.h' -o -name '*.cc')
sources = $(shell find src -name '*.cc')

.DEFAULT_GOAL := help
.PHONY: help setup build demo test test-all unit test-cuda-build test-versions test-gpu soak bench bench-peers bench-python bench-search fuzz sanitize coverage install uninstall package wheel test-wheel release docs format check-format lint clean

help:
	@echo 'make demo      set up, build and run Population Based Training on MNIST (DEMO_FLAGS="--seed 3")'
	@echo 'make test      set up, build everything and run the tests, but for the long ones (an hour on two cores)'
	@echo 'make test-all  the long tests, too, which build Cadre and programs with it in other ways and repeat kills (two hours)'
	@echo 'make unit      compile what changed and run unit tests in seconds (TESTS="Experiment*"; default: all)'
	@echo 'make test-cuda-build  build with the CUDA build of torch that pip finds everywhere, and run what needs no GPU (5 GB)'
	@echo 'make test-versions    build with other versions of torch and Arrow (TORCH_VERSIONS, ARROW_VERSIONS), and test that'
	@echo 'make test-gpu         run the tests that need a GPU; fails where there is none'
	@echo 'make soak      kill, signal and stop experiments and training runs KILLS times at random, then let every single call of'
	@echo '               an experiment fail, and a hundred of each kind of run (hours)'
	@echo 'make bench     run all benchmarks and compare them with the budget (ten minutes; BENCH_FLAGS="--only pbt")'
	@echo 'make bench-peers  the same work on Ray and on Cadre, in turns, also on nodes of this machine (as root); steps of'
	@echo '               data-parallel training in Python and here; a program in Python'
	@echo 'make bench-python  what a trial, a report and a start cost in Python (a minute)'
	@echo 'make bench-search  schedulers and those of Ray, searchers and those of Optuna, 30 seeds each (hours; BENCH_FLAGS="--only tpe --seeds 10")'
	@echo 'make fuzz      feed parsers and the channel with made-up bytes, SECONDS each (FUZZERS="json wal"; default: all)'
	@echo 'make sanitize  run all tests with the address and undefined-behaviour sanitizers, and with the thread sanitizer'
	@echo 'make coverage  run all tests and report which lines they reach, in build/coverage/report'
	@echo 'make build     set up and build everything'
	@echo 'make install   build and install library, headers and the program cadre into PREFIX'
	@echo 'make uninstall remove what make install put into PREFIX, and nothing else'
	@echo 'make package   build Debian packages of them in build/$(PRESET)'
	@echo 'make wheel     build Python wheels in build/wheels, which programs in C++ use, too (PYTHONS="python3.10 python3.12")'
	@echo 'make test-wheel  install wheels without torch, and test them (PYTHONS="python3.10 python3.12 python3.13")'
	@echo 'make release   wheels, Debian packages, source archive, notes and checksums of this version, in build/cadre-<version>'
	@echo 'make docs      build the API reference in build/$(PRESET)/docs/html'
	@echo 'make setup     install what is missing: Debian packages (root or sudo), .venv with torch, data/mnist'
	@echo 'make format    format all C++ files'
	@echo 'make lint      check formatting, the order of the layers and paths in documents, and run clang-tidy over all of src'
	@echo 'make check-format  all of that but clang-tidy'
	@echo 'make clean     remove build/'
	@echo
	@echo 'PRESET=release|debug|asan|tsan   what to build and test (default: release)'
	@echo 'PREFIX=<folder>                  where to install (default: /usr/local)'
	@echo 'DESTDIR=<folder>                 root of the tree that PREFIX is in, to make a package (default: none)'
	@echo 'JOBS=<n>                         compilers at a time (default: number of CPUs)'
	@echo 'TEST_JOBS=<n>                    tests at a time (default: two more, because tests on clusters mostly wait)'
	@echo 'TORCH_BUILD=cpu|cuda             which build of torch (default: cuda where there is an NVIDIA driver, else cpu)'
	@echo 'TORCH_INDEX_URL=<url>            where pip gets torch from, for a build of another CUDA version for example'
	@echo 'CXX=<compiler>                   the compiler of a new build folder (default: clang++-19)'

setup:
	@tools/setup.sh $(setup_groups)

# Ninja configures again by itself when a CMakeLists.txt changes, but not for the presets.
$(build_dir)/build.ninja: CMakePresets.json | setup
	@cmake --preset $(PRESET) $(compiler)
	@touch $@

build: $(build_dir)/build.ninja
	@cmake --build $(build_dir) -j $(JOBS)

demo: $(build_dir)/build.ninja
	@cmake --build $(build_dir) -j $(JOBS) --target pbt_mnist cadre
	@$(build_dir)/bin/pbt_mnist --storage-path results --name "pbt_mnist_$$(date +%Y-%m-%d_%H-%M-%S)" --synch --compare $(DEMO_FLAGS)

# Tests send these signals, which are ignored in the background of a shell without job control, and below nohup.
ctest = env --default-signal=INT,QUIT,HUP ctest --preset $(PRESET) -j $(TEST_JOBS)
show_failures = { python3 tools/show_failures.py $(build_dir); exit 1; }
# With sanitizers and with g++ there are no fuzzers.
build_fuzzers = ! grep -q '^build cadre_fuzzers:' $(build_dir)/build.ninja || \
  cmake --build $(build_dir) -j $(JOBS) --target cadre_fuzzers

test: build
	@$(ctest) --label-exclude '^long$$' || $(show_failures)

test-all: build
	@$(build_fuzzers)
	@$(ctest) || $(show_failures)

unit: | setup
	@cmake --preset dev --log-level=WARNING $(compiler)
	@cmake --build build/dev -j $(JOBS) --target cadre_unit_tests
	@build/dev/bin/cadre_unit_tests --gtest_brief=1 --gtest_filter='$(TESTS)'

test-cuda-build: | setup
	@JOBS=$(JOBS) tools/test_torch.sh $(torch_version) cuda

test-versions: | setup
	@for version in $(TORCH_VERSIONS); do JOBS=$(JOBS) tools/test_torch.sh "$$version" any || exit 1; done
	@for version in $(ARROW_VERSIONS); do JOBS=$(JOBS) tools/test_arrow.sh "$$version" || exit 1; done

# A test that finds no GPU skips itself, but not here.
test-gpu: $(build_dir)/build.ninja
	@cmake --build $(build_dir) -j $(JOBS) --target cadre_torch_tests cadre_torch_preload_tests pbt_mnist fashion_mnist_train cadre cadre_core
	@CADRE_REQUIRE_GPU=1 ctest --preset $(PRESET) -R '^torch.*\..*Gpu|^gpu\.|^python\.gpu_test'

# With sanitizers, which do not go together with preloaded libraries, no calls fail.
soak: $(build_dir)/build.ninja
	@cmake --build $(build_dir) -j $(JOBS) --target cadre_soak survivor_tool $(if $(filter sanitizers,$(setup_groups)),,cadre_faults_tests)
	@$(build_dir)/bin/cadre_soak --kills $(KILLS) $(SOAK_FLAGS)
	@$(build_dir)/bin/cadre_soak --only nodes --kills $(NODE_FAULTS) $(SOAK_FLAGS)
	@CADRE_FAULTS=$(CLUSTER_FAULTS) CADRE_BIN="$(CURDIR)/$(build_dir)/bin" CADRE_SOURCE="$(CURDIR)" PYTHONDONTWRITEBYTECODE=1 \
	  .venv/bin/python tests/cluster/faults_test.py || [ $$? -eq 77 ]
	$(if $(filter sanitizers,$(setup_groups)),,@CADRE_FAULTS_STRIDE=1 CADRE_POWER_RUNS=100 $(build_dir)/bin/cadre_faults_tests --gtest_brief=1 --gtest_filter='-EveryCallOfARun*')
	$(if $(filter sanitizers,$(setup_groups)),,@CADRE_FAULTS_MOST=100 $(build_dir)/bin/cadre_faults_tests --gtest_brief=1 --gtest_filter='EveryCallOfARun*')

install: $(build_dir)/build.ninja
	@cmake --build $(build_dir) -j $(JOBS) --target cadre_package
	@cmake --install $(build_dir) --prefix "$(prefix)"
	@PREFIX="$(prefix)" cmake -DMANIFEST=$(build_dir)/install_manifest.txt -P cmake/InstallManifest.cmake

uninstall:
	@PREFIX="$(prefix)" cmake -P cmake/InstallManifest.cmake

package: $(build_dir)/build.ninja
	@cmake --build $(build_dir) -j $(JOBS) --target cadre_package
	@cd $(build_dir) && cpack

wheel: | setup
	@tools/make_wheels.sh $(PYTHONS)

test-wheel: | setup
	@tools/test_wheels.sh $(if $(PYTHONS),$(PYTHONS),.venv/bin/python)

release: package
	@tools/make_release.sh $(build_dir) $(PYTHONS)

docs: $(build_dir)/build.ninja
	@cmake --build $(build_dir) --target cadre_docs

# Both leave what they measured in results/, in new folders: they never delete.
bench: $(build_dir)/build.ninja
	@cmake --build $(build_dir) -j $(JOBS) --target cadre_bench cadre_bench_torch cadre
	@.venv/bin/python benchmarks/run_all.py $(build_dir)/bin $(BENCH_FLAGS)
	@.venv/bin/python benchmarks/dashboard.py $(build_dir)/bin

bench-peers: $(build_dir)/build.ninja
	@cmake --build $(build_dir) -j $(JOBS) --target cadre_bench cadre_step_time cadre_batch_inference cadre_read_images cadre_core
	@.venv/bin/python benchmarks/peers/side_by_side.py $(build_dir)/bin $(BENCH_FLAGS)
	@.venv/bin/python benchmarks/peers/cluster.py $(build_dir)
	@.venv/bin/python benchmarks/peers/step_time.py $(build_dir)/bin
	@.venv/bin/python benchmarks/peers/batch_inference.py $(build_dir)/bin
	@.venv/bin/python benchmarks/peers/read_images.py $(build_dir)/bin
	@PYTHONPATH="$(CURDIR)/$(build_dir)/python" .venv/bin/python benchmarks/python/guide.py

bench-python: $(build_dir)/build.ninja
	@cmake --build $(build_dir) -j $(JOBS) --target cadre_core cadre_data_python
	@PYTHONPATH=$(build_dir)/python .venv/bin/python benchmarks/python/trials.py $(BENCH_FLAGS)
	@PYTHONPATH=$(build_dir)/python .venv/bin/python benchmarks/python/data.py

# Hours on two cores, nearly all of them Optuna's; results/search keeps what was computed.
bench-search: $(build_dir)/build.ninja
	@cmake --build $(build_dir) -j $(JOBS) --target cadre_search_bench cadre_scheduler_bench cadre_population_bench pbt_mnist
	@.venv/bin/python -m pip --disable-pip-version-check -q install optuna==5.0.0 cmaes==0.13.1 scipy==1.17.1 'ray[tune]==2.60.0'
	@.venv/bin/python benchmarks/search/compare_schedulers.py $(build_dir)/bin
	@.venv/bin/python benchmarks/search/compare_populations.py $(build_dir)/bin --picture results/populations.svg
	@.venv/bin/python benchmarks/search/compare.py $(build_dir)/bin --speed
	@.venv/bin/python benchmarks/search/compare.py $(build_dir)/bin $(BENCH_FLAGS)

# Each goes on from the corpus that it has collected in $(build_dir)/fuzz.
fuzz: $(build_dir)/build.ninja
	@$(build_fuzzers)
	@printf '%s\n' $(FUZZERS) | xargs -P $(JOBS) -I '{}' \
	  tests/fuzz/run.sh --grow $(build_dir)/bin/'{}'_fuzz $(SECONDS) $(build_dir)/fuzz

sanitize:
	@$(MAKE) PRESET=asan test-all
	@$(MAKE) PRESET=tsan test-all

# One file for each program, however many processes of it there are.
coverage:
	@rm -rf build/coverage/profiles build/coverage/report
	@LLVM_PROFILE_FILE="$(CURDIR)/build/coverage/profiles/%m%c.profraw" $(MAKE) PRESET=coverage test-all
	@.venv/bin/python tools/coverage.py build/coverage

format:
	@tools/setup.sh format
	@clang-format-19 -i $(cxx_files)

# The part of lint that takes seconds.
check-format:
	@tools/setup.sh format
	@clang-format-19 --dry-run -Werror $(cxx_files)
	@python3 tools/check_layers.py .
	@python3 tools/check_paths.py .

# Each file alone, without precompiled headers: what it includes is enough.
lint: check-format | setup
	@tools/setup.sh lint
	@cmake --preset lint --log-level=WARNING
	@cmake --build build/lint --target generated/channel/protocol.capnp.h -- --quiet
	@run-clang-tidy-19 -quiet -j $(JOBS) -p build/lint $(sources)

clean:
	@rm -rf build
