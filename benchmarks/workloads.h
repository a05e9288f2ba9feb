// The workloads: each function adds a subcommand, which measures and prints when it is chosen.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "cli/command_line.h"

namespace cadre::bench {

void add_empty_trial(cli::Command& program);
void add_reports(cli::Command& program);
void add_checkpoints(cli::Command& program);
void add_pbt(cli::Command& program);
void add_slot_share(cli::Command& program);
void add_trials(cli::Command& program);
void add_programs(cli::Command& program);
void add_restart(cli::Command& program);
void add_memory(cli::Command& program);
void add_train(cli::Command& program);  // several
void add_validation(cli::Command& program);
void add_cluster(cli::Command& program);

// Adds a subcommand with --storage-path and --torch. `measure` runs if it is chosen, after the storage path was
// created; a pointer to its settings keeps them alive.
template <class Settings>
cli::Command add_workload(cli::Command& program, const std::string& name, const std::string& description,
                          const std::shared_ptr<Settings>& settings, void (*measure)(const Settings&)) {
  cli::Command workload = program.add_command(name, description);
  workload.show_defaults();
  workload.option("--storage-path", &settings->storage_path, "folder for the experiments, which stay there").required();
  // The main function looks for it.
  workload.flag("--torch", nullptr, "with libtorch in the process: by the program cadre_bench_torch beside this one");
  workload.on_call([settings, measure] {
    std::filesystem::create_directories(settings->storage_path);
    settings->storage_path = std::filesystem::canonical(settings->storage_path);
    measure(*settings);
  });
  return workload;
}

}  // namespace cadre::bench
