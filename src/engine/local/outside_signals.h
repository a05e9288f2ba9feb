// Termination signals that reach a worker from outside. Service managers, batch systems and containers send them to
// every process of a job at once: then they are meant for the controller, which ends its workers in good order, and
// the worker continues. A signal that only this worker gets is meant for it. The fork server distinguishes the two
// cases, because it also gets the signals that are sent to all.
#pragma once

#include <signal.h>

#include <array>
#include <cstddef>

#include "engine/local/worker_table.h"

namespace cadre::engine::local {

inline constexpr std::array outside_signals{SIGINT, SIGTERM, SIGHUP};
// Sent by a worker to the server after it wrote to its slot of the table.
inline constexpr int attention_signal = SIGUSR1;

bool is_outside_signal(int signal);

// Blocks these signals in the calling thread. Returns the previous mask.
sigset_t block_outside_signals();

// Installs handlers in a worker, whose parent must be the server: a signal from another process is recorded in the
// table and the server is notified. A signal that the worker sends to itself, or that reaches a child it has forked,
// takes its default action; programs that it executes have the default too. Signals that the program ignored before
// cadre::init stay ignored. `table` must outlive the process.
void leave_outside_signals_to_server(WorkerTable& table, std::size_t slot);

}  // namespace cadre::engine::local
