// The workloads: each function adds a subcommand, which measures and prints when it is chosen.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>

namespace cadre::bench {

void add_empty_trial(CLI::App& program);
void add_reports(CLI::App& program);
void add_checkpoints(CLI::App& program);
void add_pbt(CLI::App& program);
void add_slot_share(CLI::App& program);
void add_trials(CLI::App& program);
void add_restart(CLI::App& program);
void add_memory(CLI::App& program);
void add_train(CLI::App& program);  // several subcommands
void add_validation(CLI::App& program);

// Adds a subcommand with --storage-path and --torch. `measure` runs if it is chosen, after the storage path was
// created; a pointer to its settings keeps them alive.
template <class Settings>
CLI::App& add_workload(CLI::App& program, const std::string& name, const std::string& description,
                       const std::shared_ptr<Settings>& settings, void (*measure)(const Settings&)) {
  CLI::App* const workload = program.add_subcommand(name, description);
  workload->option_defaults()->always_capture_default();
  workload->add_option("--storage-path", settings->storage_path, "folder for the experiments, which stay there")
      ->required();
  workload->add_flag("--torch")->description(
      "with libtorch in the process: by the program cadre_bench_torch beside this one");
  workload->callback([settings, measure] {
    std::filesystem::create_directories(settings->storage_path);
    settings->storage_path = std::filesystem::canonical(settings->storage_path);
    measure(*settings);
  });
  return *workload;
}

}  // namespace cadre::bench
