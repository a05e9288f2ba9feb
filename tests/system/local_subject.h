// The local engine as a subject of the conformance suite, and directories for its workers.
#pragma once

#include <filesystem>
#include <memory>

#include "channel/worker_end.h"
#include "engine/engine.h"
#include "support/temporary_directory.h"

namespace cadre::system_tests {

// A worker's function, registered under the name of its assignment's entry.
using Body = void (*)(channel::WorkerEnd&, const Value&);
bool entry(const char* name, Body body);
// For bodies: sends a first report; returns the descriptor of the worker's end of its connection, -1 if it is closed.
void report_metrics(channel::WorkerEnd& controller, const Metrics& metrics);
int connection_descriptor();

class LocalSubject {
 public:
  LocalSubject();
  std::unique_ptr<engine::Engine> make_engine();
  std::filesystem::path make_directory();

 private:
  test_support::TemporaryDirectory directory_;
  int directories_ = 0;
};

}  // namespace cadre::system_tests
