#include "engine/engine.h"

#include <cstring>

namespace cadre::engine {
namespace {

std::string signal_text(int number) {
  const char* name = ::sigabbrev_np(number);
  return "was ended by signal " + std::to_string(number) + (name == nullptr ? "" : " (SIG" + std::string(name) + ")");
}

std::string kind_text(const Exit& exit) {
  switch (exit.kind) {
    case Exit::Kind::code:
      return "exited with code " + std::to_string(exit.value);
    case Exit::Kind::signal:
      return signal_text(exit.value);
    case Exit::Kind::not_started:
      return "could not be started";
    case Exit::Kind::lost:
      return "was lost with the engine that ran it";
    case Exit::Kind::node_lost:
      return "was lost with its node";
  }
  return "ended";
}

}  // namespace

std::string to_string(const Exit& exit) {
  return exit.detail.empty() ? kind_text(exit) : kind_text(exit) + ": " + exit.detail;
}

std::string output_text(const Exit& exit) {
  return exit.output.empty() ? "" : "\nThe last lines of its stderr:\n" + exit.output;
}

}  // namespace cadre::engine
