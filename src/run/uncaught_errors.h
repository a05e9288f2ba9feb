// Exceptions that nobody catches: the program says what they are, and ends with an exit code, instead of a core dump.
#pragma once

namespace cadre::run {

// From here on, in this process and not in those that it forks: a std::exception that nobody catches is said on
// standard error, after the program's name, and the program ends: with 130, 143 or 129 where it is an
// Interrupted by SIGINT, SIGTERM or SIGHUP, else with 1. The stack is not unwound; standard output is flushed. Whatever
// else calls std::terminate goes to the handler that was there before, and so does everything in a program that has set
// one.
void report_uncaught_errors();

}  // namespace cadre::run
