// The sub-commands of the program `cadre`, each in a file of its own name. Each adds itself to the program's command
// line; what it does it throws as cadre::Error when it cannot.
#pragma once

#include "cli/command_line.h"

namespace cadre::cli {

void add_ls(Command& program);
void add_show(Command& program);
void add_logs(Command& program);
void add_best(Command& program);
void add_plot(Command& program);
void add_replay(Command& program);
void add_export(Command& program);

}  // namespace cadre::cli
