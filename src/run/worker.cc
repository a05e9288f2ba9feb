#include "run/worker.h"

#include <cxxabi.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <typeinfo>

#include "channel/worker_end.h"
#include "run/entries.h"

namespace cadre::run {
namespace {

constexpr std::size_t max_description_bytes = std::size_t{64} << 10;

std::string type_name(const std::type_info* type) {
  if (type == nullptr) return "unknown type";
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(abi::__cxa_demangle(type->name(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 ? name.get() : type->name();
}

// The entry's failure; empty when it returned or was stopped.
std::optional<std::string> run_entry(channel::WorkerEnd& controller, const channel::Assignment& assignment) {
  const Entry* const entry = find_entry(assignment.entry);
  if (entry == nullptr) return "this program has nothing named \"" + assignment.entry + "\" to run";
  try {
    (*entry)(controller, assignment.payload);
  } catch (const StopWorker&) {
    return std::nullopt;
  } catch (const channel::ControllerGone&) {
    throw;
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {
    return describe_current_exception();
  }
  return std::nullopt;
}

void serve(channel::WorkerEnd& controller) {
  const std::optional<std::string> failure = run_entry(controller, controller.receive_assignment());
  std::fflush(nullptr);  // before the last word, on which the controller may read the files
  std::cout.flush();
  std::clog.flush();
  if (failure) {
    controller.failed(*failure);
  } else {
    controller.finished();
  }
}

void append_description(std::string& text, const std::exception& error) {
  text += type_name(&typeid(error)) + ": " + error.what();
  try {
    std::rethrow_if_nested(error);
  } catch (const std::exception& nested) {
    text += "\n  because of ";
    append_description(text, nested);
  } catch (...) {
    text += "\n  because of an exception of type " + type_name(abi::__cxa_current_exception_type());
  }
}

}  // namespace

void run_worker(base::FileDescriptor connection) {
  channel::WorkerEnd controller(std::move(connection));
  try {
    serve(controller);
  } catch (const channel::ControllerGone&) {
    ::_exit(1);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cadre: the worker cannot go on: %s\n", error.what());
    std::fflush(stderr);
    ::_exit(1);
  }
  ::_exit(0);  // not exit(): the destructors of static objects take 110 ms with libtorch, for nothing
}

std::string describe_current_exception() {
  std::string text;
  try {
    throw;
  } catch (const std::exception& error) {
    append_description(text, error);
  } catch (...) {
    text = "an exception of type " + type_name(abi::__cxa_current_exception_type());
  }
  if (text.size() > max_description_bytes) text.resize(max_description_bytes);
  return text;
}

}  // namespace cadre::run
