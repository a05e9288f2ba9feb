// Back traces of workers that crash.
#pragma once

#include <string_view>

namespace cadre::engine::local {

// Beginning of the line before a back trace on stderr.
inline constexpr std::string_view kBackTraceMark = "cadre: back trace after ";

// Returns true for SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT.
bool is_crash_signal(int signal);

// Loads the libraries that back traces need, because a crashed process must not load them. Called once, in the
// server.
void prepare_back_traces();

// Makes the signals of crashes write a back trace of their thread to stderr before their default action at the
// faulting instruction: core dumps, debuggers and the worker's end are as without it. A signal that already has a
// handler, of a sanitizer or the program, keeps it. Called in a worker.
void install_crash_handlers();

}  // namespace cadre::engine::local
