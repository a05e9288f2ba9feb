// Assertions of fuzzers: each must hold for every input; an input that violates one is a finding.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace cadre::fuzz {

// Ends the program if `holds` is false; libFuzzer then writes the input to a file.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

}  // namespace cadre::fuzz
