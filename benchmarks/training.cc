#include "training.h"

#include <utility>

#include "experiment.h"

namespace cadre::bench {

TrainRun run_training(const std::filesystem::path& storage_path, const std::string& name, double cpus, train::Loop loop,
                      train::TrainerOptions options) {
  options.run_config.name = name;
  options.run_config.storage_path = storage_path;
  options.run_config.verbose = 0;
  Process process = Process::fork([&] {
    init_with_slots(cpus);
    train::Trainer trainer(std::move(loop), std::move(options));
    const double began = now_seconds();
    const Stopwatch stopwatch;
    trainer.fit();
    return Dict{{"wall_s", stopwatch.seconds()}, {"began_s", began}};
  });
  const Process::Ended ended = process.wait();
  const Config said(ended.said);
  return {said.get<double>("wall_s"), said.get<double>("began_s"), ended.usage,
          train::Result::from_directory(storage_path / name)};
}

}  // namespace cadre::bench
