// Workers that crash: they exit as they would without a back trace, and the error has their last output and a back
// trace.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "engine_conformance.h"
#include "local_subject.h"
#include "support/sanitized.h"

namespace cadre::system_tests {

// These have names of their own in the symbol table and are never inlined; the second is not exported.
[[gnu::noinline]] void write_through_a_wild_pointer() {
  volatile int* volatile place = reinterpret_cast<int*>(8);
  *place = 1;
}

namespace {

using engine::Exit;
using engine::conformance::Listener;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

[[gnu::noinline]] void abort_in_a_static_function() { ::abort(); }

[[gnu::noinline]] std::uint64_t overflow_the_stack(std::uint64_t depth) {
  if (depth == ~std::uint64_t{0}) return 0;
  volatile char frame[4096];
  frame[depth % sizeof frame] = 1;
  return overflow_the_stack(depth + 1) + static_cast<std::uint64_t>(frame[0]);
}

[[maybe_unused]] const bool faults = entry("writes through a wild pointer", [](channel::WorkerEnd&, const Value&) {
  for (int line = 1; line <= 15; ++line) std::fprintf(stderr, "line %d\n", line);
  write_through_a_wild_pointer();
});

[[maybe_unused]] const bool aborts =
    entry("aborts", [](channel::WorkerEnd&, const Value&) { abort_in_a_static_function(); });

[[maybe_unused]] const bool overflows =
    entry("overflows its stack", [](channel::WorkerEnd&, const Value&) { overflow_the_stack(0); });

[[maybe_unused]] const bool throws_in_thread = entry("throws in a thread", [](channel::WorkerEnd&, const Value&) {
  std::thread([] { throw std::runtime_error("no such folder: /data"); }).join();
});

[[maybe_unused]] const bool faults_in_threads = entry("faults in threads", [](channel::WorkerEnd&, const Value&) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back(write_through_a_wild_pointer);
  for (std::thread& thread : threads) thread.join();
});

[[maybe_unused]] const bool sent = entry("is sent a signal", [](channel::WorkerEnd&, const Value& payload) {
  ::kill(::getpid(), payload.get<int>());
  for (;;) ::pause();
});

[[maybe_unused]] const bool has_handler = entry("has a handler", [](channel::WorkerEnd&, const Value&) {
  ::signal(SIGSEGV, [](int) { ::_exit(7); });
  write_through_a_wild_pointer();
});

[[maybe_unused]] const bool says = entry("says why and exits", [](channel::WorkerEnd&, const Value&) {
  std::fprintf(stderr, "cannot go on\xff\n\n");
  std::exit(3);
});

[[maybe_unused]] const bool talks = entry("talks and throws", [](channel::WorkerEnd&, const Value&) {
  std::fprintf(stderr, "a warning\n");
  throw std::runtime_error("why");
});

class CrashOfAWorker : public ::testing::Test {
 protected:
  Exit exit_of(const char* name, Value payload = {}) {
    const auto worker = heard.start({.assignment = {name, std::move(payload)}, .directory = directory});
    EXPECT_TRUE(heard.until([&] { return !heard[worker].exits.empty(); }));
    return heard.exit(worker);
  }

  LocalSubject subject;
  std::filesystem::path directory = subject.make_directory();
  std::unique_ptr<engine::Engine> engine = subject.make_engine();
  Listener heard{*engine};
};

TEST_F(CrashOfAWorker, SaysTheLastLinesOfItsStderrAndWhereItWas) {
  const Exit exit = exit_of("writes through a wild pointer");
  EXPECT_EQ(to_string(exit), "was ended by signal 11 (SIGSEGV)");
  if (test_support::sanitized) return;  // the sanitizer's own handler prints more
  EXPECT_THAT(exit.output, AllOf(HasSubstr("  line 6\n"), HasSubstr("  line 15\n"), Not(HasSubstr("line 5\n")),
                                 HasSubstr("\n  back trace after SIGSEGV at address 0x8:\n"
                                           "  #0 cadre::system_tests::write_through_a_wild_pointer()")));
  EXPECT_THAT(engine::output_text(exit), testing::StartsWith("\nThe last lines of its stderr:\n  line 6\n"));
}

TEST_F(CrashOfAWorker, NamesFunctionsThatTheProgramDoesNotExport) {
  if (test_support::sanitized) GTEST_SKIP() << "the sanitizer is in between";
  const Exit exit = exit_of("aborts");
  EXPECT_EQ(to_string(exit), "was ended by signal 6 (SIGABRT)");
  EXPECT_THAT(exit.output, HasSubstr("cadre::system_tests::(anonymous namespace)::abort_in_a_static_function()"));
  EXPECT_THAT(exit.output, Not(HasSubstr("run_worker")));
}

TEST_F(CrashOfAWorker, AStackThatOverflowsHasABackTrace) {
  if (test_support::sanitized) GTEST_SKIP() << "the sanitizer has larger frames";
  const Exit exit = exit_of("overflows its stack");
  EXPECT_EQ(to_string(exit), "was ended by signal 11 (SIGSEGV)");
  EXPECT_THAT(exit.output, HasSubstr("overflow_the_stack("));
}

TEST_F(CrashOfAWorker, AnExceptionThatNobodyCatchesSaysItsTypeAndWhat) {
  const Exit exit = exit_of("throws in a thread");
  EXPECT_EQ(to_string(exit), "was ended by signal 6 (SIGABRT)");
  EXPECT_THAT(exit.output, AllOf(HasSubstr("std::runtime_error"), HasSubstr("no such folder: /data")));
}

TEST_F(CrashOfAWorker, ThreadsThatCrashTogetherLeaveOneWholeBackTrace) {
  if (test_support::sanitized) GTEST_SKIP() << "the sanitizer has handlers of its own";
  const Exit exit = exit_of("faults in threads");
  EXPECT_EQ(to_string(exit), "was ended by signal 11 (SIGSEGV)");
  EXPECT_THAT(exit.output, HasSubstr("#0 cadre::system_tests::write_through_a_wild_pointer()"));
}

TEST_F(CrashOfAWorker, ASignalFromOutsideEndsItAsByDefault) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    const Exit exit = exit_of("is sent a signal", signal);
    EXPECT_EQ(exit.kind, Exit::Kind::signal);
    EXPECT_EQ(exit.value, signal);
  }
}

TEST_F(CrashOfAWorker, AHandlerOfItsOwnStays) {
  const Exit exit = exit_of("has a handler");
  EXPECT_EQ(to_string(exit), "exited with code 7");
  EXPECT_EQ(exit.output, "");
}

TEST_F(CrashOfAWorker, AnExitSaysTheLastLinesTooAndNotThoseOfAnEarlierWorker) {
  exit_of("writes through a wild pointer");
  const Exit exit = exit_of("says why and exits");
  EXPECT_EQ(to_string(exit), "exited with code 3");
  EXPECT_EQ(exit.output, "  cannot go on\xef\xbf\xbd");
}

TEST_F(CrashOfAWorker, WhoHasSaidWhyInAMessageHasNoMore) { EXPECT_EQ(exit_of("talks and throws").output, ""); }

}  // namespace
}  // namespace cadre::system_tests
