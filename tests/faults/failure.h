// One call that is made to fail, and shared code of the tests of such calls.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace cadre::survival {

inline long number_from_environment(const char* name, long fallback) {
  const char* const text = std::getenv(name);
  return text == nullptr ? fallback : std::atol(text);
}

inline void expect_no_faults(const std::vector<std::string>& faults, const std::string& context) {
  for (const std::string& fault : faults) ADD_FAILURE() << context << ": " << fault;
}

// A call of a process and the way in which it fails; see fail_call.cc.
struct Failure {
  std::string role;
  std::string how;
  long call = 1;
  std::string only = {};
  std::filesystem::path report = {};
};

inline std::vector<std::string> environment_of(const Failure& failure) {
  std::vector<std::string> environment{
      "LD_PRELOAD=" CADRE_FAIL_CALL_LIBRARY, "CADRE_FAIL_ROLE=" + failure.role, "CADRE_FAIL_HOW=" + failure.how,
      "CADRE_FAIL_CALL=" + std::to_string(failure.call), "CADRE_FAIL_REPORT=" + failure.report.string()};
  if (!failure.only.empty()) environment.push_back("CADRE_FAIL_ONLY=" + failure.only);
  return environment;
}

// Lets every `stride`-th call fail, beginning at a random one, or as the environment says, until `fail_one` returns
// false `forms` times in a row because there is no such call, at most `most` times: calls may be those of runs of as
// many forms, in turn, of which one makes fewer than the others.
inline void fail_calls(long stride, const std::function<bool(long)>& fail_one, long forms = 1,
                       long most = std::numeric_limits<long>::max()) {
  stride = number_from_environment("CADRE_FAULTS_STRIDE", stride);
  const long drawn = 1 + static_cast<long>(std::random_device()() % static_cast<unsigned long>(stride));
  long first = number_from_environment("CADRE_FAULTS_FIRST", drawn);
  bool is_there = fail_one(first);
  while (!is_there && first > 1) is_there = fail_one(first /= 2);  // fewer calls were made than `stride`
  long calls = is_there ? 1 : 0;
  long missing = 1 - calls;
  for (long call = first; missing < forms && calls < most && !::testing::Test::HasFatalFailure();) {
    is_there = fail_one(call += stride);
    calls += is_there ? 1 : 0;
    missing = is_there ? 0 : missing + 1;
  }
  ::testing::Test::RecordProperty("calls", static_cast<int>(calls));
  std::printf("%ld calls, every %ld-th, from %ld\n", calls, stride, first);
  EXPECT_GT(calls, 0);
}

}  // namespace cadre::survival
