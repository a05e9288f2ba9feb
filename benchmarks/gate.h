// A point that processes come to, where they say so and wait: the benchmark then knows what state everything is in.
#pragma once

#include <cstdint>
#include <filesystem>

#include "base/file.h"
#include "process.h"

namespace cadre::bench {

class Gate {
 public:
  // Makes two named pipes, "<path>.arrived" and "<path>.open".
  explicit Gate(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  // Waits until `count` more processes have come to the gate. Throws Error when `process` ends before that.
  void await(std::int64_t count, const Process& process) const;
  // Lets `count` processes through.
  void open(std::int64_t count) const;

 private:
  std::filesystem::path path_;
  base::FileDescriptor arrived_;
  base::FileDescriptor open_;
};

// In any other process: comes to the gate at `path` and waits until it is let through.
void pass_gate(const std::filesystem::path& path);

}  // namespace cadre::bench
