// Signals that ask a program to end, and reach a worker from outside. Service managers, batch systems and containers
// send them to every process of a job at once: then they are meant for the controller, which ends its workers in good
// order, and a worker goes on. One that only this worker gets is meant for it. The fork server tells the two apart: it
// gets the first kind as well.
#pragma once

#include <signal.h>

#include <array>
#include <cstddef>

#include "engine/local/worker_table.h"

namespace cadre::engine::local {

inline constexpr std::array outside_signals{SIGINT, SIGTERM, SIGHUP};
// How a worker draws the server's attention to its slot of the table.
inline constexpr int attention_signal = SIGUSR1;

bool is_outside_signal(int signal);

// In the calling thread. Returns the mask before.
sigset_t block_outside_signals();

// In a worker, whose server is its parent: one of these signals from another process is noted in the table, and the
// server is told. One that the worker sends to itself, and one in a child that it has forked, does what it does by
// default; programs that it executes have the default too. Signals that the program ignored before cadre::init stay
// ignored. `table` must outlive the process.
void leave_outside_signals_to_server(WorkerTable& table, std::size_t slot);

}  // namespace cadre::engine::local
