// Ends in many ways, to test what a user then sees: program_end_tool <way> [<storage path> [<if_exists>]].
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>

#include <unistd.h>

#include "cadre/train.h"
#include "cadre/tune.h"

namespace {

using namespace cadre;

constexpr std::int64_t kEndless = 1'000'000'000;

void count(const Config& config) {
  std::int64_t step = 0;
  if (const auto checkpoint = tune::get_checkpoint())
    step = std::stoll(checkpoint->path().filename().string().substr(11)) + 1;
  while (step < config.get<std::int64_t>("steps")) {
    ++step;
    tune::report({{"step", step}}, [](const std::filesystem::path&) {});
  }
}

void count_in_loop(const Config& config) {
  const std::int64_t steps = config.get<std::int64_t>("steps");
  for (std::int64_t step = 1; step <= steps; ++step) train::report({{"step", step}});
}

void own_handler() {
  std::fputs("my own handler\n", stderr);
  ::_exit(7);
}

IfExists to_if_exists(const std::string& name) {
  if (name == "restore") return IfExists::restore;
  return name == "new_name" ? IfExists::new_name : IfExists::fail;
}

void run_trials(const std::string& storage, const std::string& if_exists, std::int64_t steps) {
  tune::Tuner tuner(fn<count>, {.param_space = {{"steps", steps}},
                                .tune_config = {.metric = tune::maximize("step")},
                                .run_config = {.name = "mine",
                                               .if_exists = to_if_exists(if_exists),
                                               .storage_path = storage,
                                               .checkpoint_config = {.num_to_keep = 1}}});
  const tune::ResultGrid results = tuner.fit();
  std::cout << "best " << results.get_best_result().metrics.get<std::int64_t>("step") << " in "
            << results.experiment_path().filename() << '\n';
}

void run_training(const std::string& storage, const std::string& if_exists, std::int64_t steps) {
  train::Trainer trainer(
      fn<count_in_loop>,
      {.train_loop_config = {{"steps", steps}},
       .run_config = {.name = "mine", .if_exists = to_if_exists(if_exists), .storage_path = storage}});
  const train::Result result = trainer.fit();
  std::cout << "last " << result.metrics.get<std::int64_t>("step") << " in " << result.path.filename() << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  const std::string way = argv[1];
  const std::string storage = argc > 2 ? argv[2] : "";
  const std::string if_exists = argc > 3 ? argv[3] : "fail";
  if (way == "handler_before") std::set_terminate(own_handler);
  if (way != "without_init") init(argc, argv, {.num_cpus = 1});
  if (way == "handler_after") std::set_terminate(own_handler);
  std::cout << "before the end";  // without a line end: it waits in the buffer
  if (way == "error" || way.starts_with("handler")) throw InvalidArgument("this does not work");
  if (way == "other_exception") throw std::out_of_range("beyond the end");
  if (way == "number") throw 42;
  if (way == "abort") std::abort();
  if (way == "thread") std::thread([] { throw NotFound("not in this thread"); }).join();
  if (way == "caught") {
    try {
      throw InvalidArgument("this is caught");
    } catch (const Error&) {
    }
  }
  if (way == "trials" || way == "without_init") run_trials(storage, if_exists, 5);
  if (way == "other_trials") run_trials(storage, if_exists, 6);
  if (way == "endless_trials") run_trials(storage, if_exists, kEndless);
  if (way == "training") run_training(storage, if_exists, 5);
  if (way == "other_training") run_training(storage, if_exists, 6);
  if (way == "endless_training") run_training(storage, if_exists, kEndless);
}
