// Handling of uncaught exceptions: the program prints them and ends with an exit code, instead of a core dump.
#pragma once

namespace cadre::worker {

// Installs a terminate handler in this process, but not in its forks. For an uncaught std::exception it prints the
// program's name and the message on standard error, and ends the program: with 130, 143 or 129 for an Interrupted by
// SIGINT, SIGTERM or SIGHUP, otherwise with 1. The stack is not unwound; standard output is flushed. Other calls of
// std::terminate are passed to the previous handler. Does nothing in a program that has set its own handler.
void report_uncaught_errors();

}  // namespace cadre::worker
