// Calls cadre::init, then runs the tests, or one scenario (scenario.h) instead of them.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "cadre/init.h"
#include "scenario.h"
#include "surroundings.h"

namespace {

using namespace cadre::system_tests;  // NOLINT(google-build-using-namespace)

bool has_argument(int argc, char** argv, std::string_view argument) {
  for (int i = 1; i < argc; ++i) {
    if (argument == argv[i]) return true;
  }
  return false;
}

void start_thread_that_stays() {
  std::thread([] {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    for (std::condition_variable never;;) never.wait(lock);
  }).detach();
}

void allow_few_open_files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = 64;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) std::abort();
}

// Tests send these signals, which are ignored in the background of a shell without job control, and below nohup.
void heed_signals() {
  for (const int signal : {SIGINT, SIGQUIT, SIGHUP}) ::signal(signal, SIG_DFL);
}

void before_init(int argc, char** argv) {
  if (has_argument(argc, argv, own_oom_counter)) take_own_oom_counter();
  if (has_argument(argc, argv, own_small_disk)) take_own_small_disk();
  if (has_argument(argc, argv, small_cgroup)) take_small_cgroup();
  if (has_argument(argc, argv, few_open_files)) allow_few_open_files();
  const bool executed = std::getenv("CADRE_FORK_SERVER") != nullptr;
  if (!executed) heed_signals();
  if (has_argument(argc, argv, thread_always)) start_thread_that_stays();
  if (has_argument(argc, argv, thread_before_init) && !executed) start_thread_that_stays();
  if (has_argument(argc, argv, without_root) && ::getuid() == 0 && ::setuid(65534) != 0) std::abort();
}

void throw_in_preload() { throw std::runtime_error("no such data set"); }
void take_long_in_preload() { std::this_thread::sleep_for(std::chrono::seconds(1)); }

}  // namespace

int main(int argc, char** argv) {
  before_init(argc, argv);
  cadre::InitOptions options{.num_cpus = 4,
                             .num_gpus = 2,
                             .resources = {{"license", 2}},
                             .accelerator_type = "H100",
                             .labels = {{"zone", "eu"}}};
  if (has_argument(argc, argv, preload_throws)) options.preload = throw_in_preload;
  if (has_argument(argc, argv, preload_takes_long)) options.preload = take_long_in_preload;
  cadre::init(argc, argv, options);
  if (const auto scenario = find_scenario(argc, argv)) return (*scenario)();
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
