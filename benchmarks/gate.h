// A point at which processes report their arrival and wait, so that the benchmark knows the state of all of them.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/file.h"
#include "process.h"

namespace cadre::bench {

class Gate {
 public:
  // Creates two named pipes, "<path>.arrived" and "<path>.open".
  explicit Gate(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  // Waits until `count` more processes have arrived at the gate. Throws Error if `process` ends before that.
  void await(std::int64_t count, const Process& process) const;
  // Lets `count` processes through.
  void open(std::int64_t count) const;

 private:
  std::filesystem::path path_;
  base::FileDescriptor arrived_;
  base::FileDescriptor open_;
};

// Reports the arrival of another process at the gate at `path`, and waits until it is let through.
void pass_gate(const std::filesystem::path& path);

}  // namespace cadre::bench
