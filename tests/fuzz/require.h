// What a fuzzer says of a program: it holds for every input, or the input is a finding.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace cadre::fuzz {

// Ends the program where `what` does not hold; libFuzzer then writes the input to a file.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

}  // namespace cadre::fuzz
