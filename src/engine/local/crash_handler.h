// Back traces of workers that crash.
#pragma once

#include <string_view>

namespace cadre::engine::local {

// The line that a back trace follows on stderr begins with it.
inline constexpr std::string_view kBackTraceMark = "cadre: back trace after ";

// SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT.
bool is_crash_signal(int signal);

// In the server, once: loads what back traces need, which a process that has crashed must not do.
void prepare_back_traces();

// In a worker: the signals of crashes write a back trace of their thread to stderr, and then do
// what they do by default, where the fault is: core dumps, debuggers and the worker's end are as without it. A signal
// that has a handler already, a sanitizer's or the program's own, keeps it.
void install_crash_handlers();

}  // namespace cadre::engine::local
