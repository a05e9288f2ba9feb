// A program whose trials report often, for reports_test.py:
//
//   reports_tool <storage path> <trials> <reports> <checkpoint every> <milliseconds between>
//
// Each trial appends a line "<node> <begin> <end>" to its file "gaps" for each report that took long, in seconds of
// time.monotonic(), and a line "<node> <reports before>" to "begun" when it begins. Prints a line of JSON for each
// trial.
#include <cadre/init.h>
#include <cadre/tune.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>

#include "base/machine.h"
#include "survival/network.h"

namespace {

namespace tune = cadre::tune;
using cadre::fn;
using Clock = std::chrono::steady_clock;

constexpr const char* kNodeVariable = "CADRE_TEST_NODE";
constexpr auto kLong = std::chrono::milliseconds(20);

std::string this_node() {
  const char* const name = std::getenv(kNodeVariable);
  return name == nullptr ? cadre::base::host_name() : name;
}

void report_often(const cadre::Config&, const cadre::Config& parameters) {
  const std::chrono::duration<double, std::milli> pause(parameters.get<double>("milliseconds"));
  const auto every = parameters.get<std::int64_t>("every");
  const std::string node = this_node();
  std::int64_t done = 0;
  if (const auto checkpoint = tune::get_checkpoint()) std::ifstream(checkpoint->path() / "state") >> done;
  const std::filesystem::path directory = tune::get_context().get_trial_dir();
  std::ofstream(directory / "begun", std::ios::app) << node << ' ' << done << std::endl;
  std::ofstream gaps(directory / "gaps", std::ios::app);
  gaps.precision(15);
  for (;;) {
    std::this_thread::sleep_for(pause);
    ++done;
    const cadre::Metrics metrics{{"count", done}, {"node", node}};
    const auto before = Clock::now();
    if (done % every == 0) {
      tune::report(metrics,
                   [&](const std::filesystem::path& checkpoint) { std::ofstream(checkpoint / "state") << done; });
    } else {
      tune::report(metrics);
    }
    const auto seconds = [](Clock::time_point time) {
      return std::chrono::duration<double>(time.time_since_epoch()).count();
    };
    if (const auto after = Clock::now(); after - before > kLong)
      gaps << node << ' ' << seconds(before) << ' ' << seconds(after) << std::endl;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (const std::string node = cadre::survival::enter_network(); !node.empty())
    ::setenv(kNodeVariable, node.c_str(), 1);
  cadre::init(argc, argv, {.num_cpus = 2});
  if (argc != 6) return 2;
  const tune::ResultGrid results =
      tune::Tuner(tune::with_parameters(fn<report_often>,
                                        {{"every", std::atoll(argv[4])}, {"milliseconds", std::atof(argv[5])}}),
                  tune::TunerOptions{.tune_config = {.num_samples = std::atoll(argv[2])},
                                     .run_config = {.name = "reports",
                                                    .storage_path = argv[1],
                                                    .stop = {{"training_iteration", std::atof(argv[3])}},
                                                    .verbose = 0}})
          .fit();
  for (const tune::Result& result : results)
    std::cout << cadre::to_json(cadre::Dict{{"error", result.error.value_or("")},
                                            {"count", result.metrics.get<std::int64_t>("count")},
                                            {"node", result.metrics.get<std::string>("node")}})
              << '\n';
  return results.num_errors() == 0 ? 0 : 1;
}
