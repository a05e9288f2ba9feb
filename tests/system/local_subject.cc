#include "local_subject.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <string>

#include "channel/worker_end.h"
#include "worker/entries.h"
#include "worker/root_engine.h"
#include "worker/worker.h"

namespace cadre::system_tests {
namespace {

// A script as described in engine_conformance.h.
class Script {
 public:
  explicit Script(channel::WorkerEnd& controller) : controller_(controller) {}

  void run(const Value& step) {
    const auto& [key, value] = step.dict().at(0);
    if (key == "report") return report(value.dict(), "");
    if (key == "report_checkpoint") return report({}, value.get<std::string>());
    if (key == "throw") throw std::runtime_error(value.get<std::string>());
    if (key == "exit") ::_exit(value.get<int>());
    if (key == "signal") ::raise(value.get<int>());
    for (;;) ::pause();
  }

 private:
  void report(const Dict& entries, const std::string& checkpoint) {
    Metrics metrics(entries);
    if (!committed_.empty()) metrics.set("committed", committed_);
    const channel::Answer answer = controller_.report({++step_, metrics, checkpoint});
    committed_ = answer.checkpoint;
    if (answer.verdict == channel::Verdict::stop) throw worker::StopWorker{};
  }

  channel::WorkerEnd& controller_;
  std::int64_t step_ = 0;
  std::string committed_;
};

[[maybe_unused]] const bool registered = [] {
  worker::register_entry("conformance", [](channel::WorkerEnd& controller, const Value& payload) {
    Script script(controller);
    for (const Value& step : payload.items()) script.run(step);
    return Value();
  });
  return true;
}();

}  // namespace

bool entry(const char* name, Body body) {
  worker::register_entry(name, [body](channel::WorkerEnd& controller, const Value& payload) {
    body(controller, payload);
    return Value();
  });
  return true;
}

void report_metrics(channel::WorkerEnd& controller, const Metrics& metrics) {
  controller.report({.step = 1, .metrics = metrics, .checkpoint = ""});
}

int connection_descriptor() {
  for (int fd = 255; fd > 2; --fd) {
    int type = 0;
    socklen_t size = sizeof type;
    if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM) return fd;
  }
  return -1;
}

LocalSubject::LocalSubject() {
  // Some workers of these tests give up root.
  std::filesystem::permissions(directory_.path(), std::filesystem::perms::all);
}

std::unique_ptr<engine::Engine> LocalSubject::make_engine() { return worker::make_root_engine(); }

std::filesystem::path LocalSubject::make_directory() {
  const std::filesystem::path path = directory_.path() / std::to_string(++directories_);
  std::filesystem::create_directory(path);
  return path;
}

}  // namespace cadre::system_tests
