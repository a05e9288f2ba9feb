// Runs an experiment whose console output is tested: console_tool <storage path> [name=number]..., with the names of
// Setting.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <stdexcept>

#include "cadre/tune.h"

namespace {

using namespace cadre;
namespace fs = std::filesystem;

struct Setting {
  std::int64_t trials = 4;
  std::int64_t iterations = 10;
  std::int64_t verbose = 1;
  std::int64_t gates = 0;  // each trial waits for a byte from the named pipe <storage path>/gate<n> before iteration 3n
  std::int64_t hostile = 0;  // names and values with escape sequences
  std::int64_t fail = -1;    // the index of a trial that throws after an iteration
  std::int64_t speak = 0;    // the controller's process writes to standard output before and after fit()
  std::int64_t fifo = 0;     // FIFO instead of Population Based Training
  std::int64_t cpus = 4;
  std::int64_t restore = 0;
  std::int64_t print = 0;    // each trial, and a process that it starts, writes lines to both streams
  std::int64_t driver = 0;   // RunConfig::log_to_driver
  std::int64_t chdir = 0;    // RunConfig::chdir_to_trial_dir
  std::int64_t no_data = 0;  // every trial fails because of the same missing data folder
  std::int64_t crash = -1;   // the index of a trial that writes through a null pointer after an iteration
};

// Clears the screen, sets the window's title, breaks the line, reverses the writing direction; then two wide
// characters.
const std::string kHostile = "evil\x1b[2J\x1b]0;title\x07\r\n\xe2\x80\xae \xe8\xa9\xb1\xe9\xa1\x8c";

void pass_gate(const std::string& pipe) {
  const int fd = ::open(pipe.c_str(), O_RDONLY);
  char byte = 0;
  if (::read(fd, &byte, 1) != 1) throw std::runtime_error("nobody is at " + pipe);
  ::close(fd);
}

void print(std::int64_t step) {
  std::cout << "step " << step << kHostile << " printed\n";
  std::cerr << "warning " << step << '\n';
  if (step == 1 && std::system("echo from a child; pwd > where") != 0) throw std::runtime_error("no shell");
}

[[gnu::noinline]] void write_through(volatile int* place) { *place = 1; }

void learn(const Config& config) {
  if (config.get<std::int64_t>("no_data") != 0)
    throw std::runtime_error(
        "cannot open /nowhere/data\nException raised from open at io.cc:1 (most recent call first):\n"
        "frame #0: open + 0x1 (0x2 in libtorch.so)\n");
  double score = 0;
  std::int64_t step = 0;
  if (const auto checkpoint = tune::get_checkpoint()) std::ifstream(checkpoint->path() / "state") >> step >> score;
  for (;;) {
    ++step;
    if (config.get<std::int64_t>("print") != 0) print(step);
    if (tune::get_context().get_trial_id() == config.get<std::string>("crashes") && step == 2) {
      std::cerr << "last words\n";
      write_through(nullptr);
    }
    if (step % 3 == 0 && step / 3 <= config.get<std::int64_t>("gates"))
      pass_gate(config.get<std::string>("gate") + std::to_string(step / 3));
    score += config.get<double>("lr") * (1 - score) / 10;
    Metrics metrics{{"loss", 1 - score}, {"score", score}, {"eval", {{"accuracy", score / 2}, {"count", step * 100}}}};
    for (const char* name : {"precision", "recall", "throughput"}) metrics.set(name, score / 3);
    if (config.get<std::int64_t>("hostile") != 0) metrics.set(kHostile + "\xff", score);
    if (tune::get_context().get_trial_id() == config.get<std::string>("fails") && step == 2)
      throw std::runtime_error("it broke: " + kHostile);
    tune::report(metrics,
                 [&](const fs::path& directory) { std::ofstream(directory / "state") << step << ' ' << score; });
  }
}

Setting parse(int argc, char** argv) {
  Setting setting;
  const std::map<std::string, std::int64_t*> fields{{"trials", &setting.trials},   {"iterations", &setting.iterations},
                                                    {"verbose", &setting.verbose}, {"gates", &setting.gates},
                                                    {"hostile", &setting.hostile}, {"fail", &setting.fail},
                                                    {"speak", &setting.speak},     {"fifo", &setting.fifo},
                                                    {"cpus", &setting.cpus},       {"restore", &setting.restore},
                                                    {"print", &setting.print},     {"driver", &setting.driver},
                                                    {"chdir", &setting.chdir},     {"no_data", &setting.no_data},
                                                    {"crash", &setting.crash}};
  for (int i = 2; i < argc; ++i) {
    const std::string argument = argv[i];
    const std::size_t equals = argument.find('=');
    *fields.at(argument.substr(0, equals)) = std::stoll(argument.substr(equals + 1));
  }
  return setting;
}

tune::TunerOptions options_of(const Setting& setting, const fs::path& storage) {
  const tune::PopulationBasedTraining pbt{
      .time_attr = "training_iteration",
      .metric = tune::maximize("score"),
      .perturbation_interval = 4,
      .hyperparam_mutations = {{"lr", tune::uniform(0.01, 1)}, {"act", {"relu", "tanh"}}},
      .synch = true};
  const std::string fails = "0000" + std::to_string(setting.fail);
  tune::TunerOptions options{
      .param_space = {{"lr", tune::uniform(0.01, 1)},
                      {"act", "relu"},
                      {"gate", (storage / "gate").string()},
                      {"gates", setting.gates},
                      {"hostile", setting.hostile},
                      {"fails", fails},
                      {"print", setting.print},
                      {"no_data", setting.no_data},
                      {"crashes", "0000" + std::to_string(setting.crash)}},
      .tune_config = {.metric = tune::maximize("score"), .num_samples = setting.trials, .scheduler = pbt, .seed = 2},
      .run_config = {.name = "experiment",
                     .storage_path = storage,
                     .stop = {{"training_iteration", static_cast<double>(setting.iterations)}},
                     .checkpoint_config = {.num_to_keep = 2},
                     .verbose = static_cast<int>(setting.verbose),
                     .log_to_driver = setting.driver != 0,
                     .chdir_to_trial_dir = setting.chdir != 0}};
  if (setting.fifo != 0) options.tune_config.scheduler = tune::FIFO{};
  if (setting.hostile != 0) options.param_space.emplace_back(kHostile, tune::choice({Value(kHostile), Value("good")}));
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  const Setting setting = parse(argc, argv);
  init(argc, argv, {.num_cpus = static_cast<double>(setting.cpus)});
  const fs::path storage = argv[1];
  try {
    if (setting.speak != 0) std::cout << "before\n";
    tune::Tuner tuner = setting.restore != 0 ? tune::Tuner::restore(storage / "experiment")
                                             : tune::Tuner(fn<learn>, options_of(setting, storage));
    const tune::ResultGrid results = tuner.fit();
    if (setting.speak != 0) std::cout << "after " << results.num_errors() << '\n';
    return 0;
  } catch (const Interrupted&) {
    std::cout << "interrupted\n";
    return 130;
  } catch (const std::exception& error) {
    std::cerr << "console_tool: " << error.what() << '\n';
    return 1;
  }
}
