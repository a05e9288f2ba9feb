// The sub-commands of the program `cadre`, each in a file of its own name (suggest and observe: study.cc; completion
// and man: shell.cc). Each function adds a command to the command line; commands report failure by throwing
// cadre::Error.
#pragma once

#include "cli/command_line.h"

namespace cadre::cli {

void add_ls(Command& program);
void add_show(Command& program);
void add_logs(Command& program);
void add_tail(Command& program);
void add_nodes(Command& program);
void add_best(Command& program);
void add_importance(Command& program);
void add_plot(Command& program);
void add_report(Command& program);
void add_dashboard(Command& program);
void add_replay(Command& program);
void add_export(Command& program);
void add_suggest(Command& program);
void add_observe(Command& program);
void add_run(Command& program);
void add_requests(Command& program);
void add_completion(Command& program);
void add_man(Command& program);
void add_tune(Command& program);

}  // namespace cadre::cli
