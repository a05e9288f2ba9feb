#include "worker/worker.h"

#include <gtest/gtest.h>

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "cadre/error.h"
#include "worker/entries.h"

namespace cadre::worker {
namespace {

template <class Throw>
std::string described(Throw thrower) {
  try {
    thrower();
  } catch (...) {
    return describe_current_exception();
  }
  return "nothing was thrown";
}

TEST(RunWorker, AnExceptionIsDescribedByItsOwnTypeAndText) {
  EXPECT_EQ(described([] { throw StorageError("cannot read x"); }), "cadre::StorageError: cannot read x");
  EXPECT_EQ(described([] { throw std::out_of_range("17"); }), "std::out_of_range: 17");
}

TEST(RunWorker, NestedExceptionsAreAppended) {
  const auto thrower = [] {
    try {
      try {
        throw 42;
      } catch (...) {
        std::throw_with_nested(std::runtime_error("inner"));
      }
    } catch (...) {
      std::throw_with_nested(std::logic_error("outer"));
    }
  };
  const std::string text = described(thrower);
  EXPECT_NE(text.find("std::logic_error"), std::string::npos) << text;
  EXPECT_NE(text.find(": outer\n  because of "), std::string::npos) << text;
  EXPECT_NE(text.find(": inner\n  because of an exception of type int"), std::string::npos) << text;
}

TEST(RunWorker, WhatIsNoStandardExceptionIsDescribedByItsType) {
  EXPECT_EQ(described([] { throw 42; }), "an exception of type int");
  EXPECT_EQ(described([] { throw std::string("text"); }).substr(0, 21), "an exception of type ");
}

TEST(RunWorker, ADescriptionIsAtMost64KiB) {
  EXPECT_EQ(described([] { throw std::runtime_error(std::string(1 << 20, 'x')); }).size(), std::size_t{64} << 10);
}

TEST(RunWorker, ADescriptionIsNotCutWithinACharacter) {
  std::string text(std::size_t{64} << 10, 'x');
  text.replace(text.size() - std::string("std::runtime_error: ").size() - 1, 1, "\u00e9");
  EXPECT_TRUE(described([&] { throw std::runtime_error(text); }).ends_with('x'));
}

TEST(RunWorker, WantOfMemoryNamesTheLimit) {
  constexpr std::uint64_t limit = std::uint64_t{64} << 20;
  EXPECT_EQ(with_memory_limit(described([] { throw std::bad_alloc(); }), limit),
            "std::bad_alloc: std::bad_alloc (the memory limit of this trial is 64 MiB)");
  const std::string libtorchs =
      "c10::Error: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: you tried "
      "to allocate 209715200 bytes. Error code 12 (Cannot allocate memory)";
  EXPECT_EQ(with_memory_limit(libtorchs, limit + limit / 4), libtorchs + " (the memory limit of this trial is 80 MiB)");
  EXPECT_EQ(with_memory_limit("std::runtime_error: no", limit), "std::runtime_error: no");
}

TEST(RunEntries, ASecondEntryOfANameIsKeptOutAndRemembered) {
  register_entry("run_worker_test", [](channel::WorkerEnd&, const Value&) -> Value { throw 1; });
  EXPECT_NE(find_entry("run_worker_test"), nullptr);
  EXPECT_EQ(find_entry("run_worker_test "), nullptr);
  EXPECT_EQ(duplicate_entry_names(), std::vector<std::string>{});
  const Entry* const first = find_entry("run_worker_test");
  register_entry("run_worker_test", [](channel::WorkerEnd&, const Value&) -> Value { throw 2; });
  EXPECT_EQ(find_entry("run_worker_test"), first);
  EXPECT_EQ(duplicate_entry_names(), std::vector<std::string>{"run_worker_test"});
}

}  // namespace
}  // namespace cadre::worker
