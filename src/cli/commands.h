// The sub-commands of the program `cadre`, each in a file of its own name. Each function adds a command to the command
// line; commands report failure by throwing cadre::Error.
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
