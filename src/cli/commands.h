// The sub-commands of the program `cadre`, each in a file of its own name. Each adds itself to the program's command
// line; what it does it throws as cadre::Error when it cannot.
#pragma once

#include <CLI/CLI.hpp>

namespace cadre::cli {

void add_ls(CLI::App& program);
void add_show(CLI::App& program);
void add_logs(CLI::App& program);
void add_best(CLI::App& program);
void add_plot(CLI::App& program);
void add_replay(CLI::App& program);
void add_export(CLI::App& program);

}  // namespace cadre::cli
