// libtorch's process groups, registered for the torch-free part of Cadre under the name "torch".
#include <signal.h>

#include <chrono>
#include <cmath>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "cadre/train_torch.h"
#include "torch/distributed/group.h"
#include "torch/distributed/nccl_backend.h"
#include "torch/faults.h"
#include "worker/group_backend.h"

namespace cadre {
namespace {

using distributed::JoinOptions;

void read_timeout(const Value& value, JoinOptions& options) {
  constexpr double longest_s = 1e7;  // about 4 months, far from overflow of a clock
  const auto seconds = value.get<double>();
  if (!(seconds > 0 && seconds <= longest_s)) throw InvalidArgument(to_json(value) + " is no time above 0 s");
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(1000 * seconds)));
}

void read_backend(const Value& value, JoinOptions& options) {
  options.backend = value.get<std::string>();
  if (!options.backend.empty() && options.backend != "gloo" && options.backend != "nccl") {
    throw InvalidArgument("there is no backend " + to_json(value) + ": there are gloo and nccl, and \"\" by device");
  }
}

// Accepts PyTorch's rendezvous methods. Both mean the store that the group gets.
void check_init_method(const Value& value) {
  const auto method = value.get<std::string>();
  if (!method.empty() && method != "env" && method != "tcp") {
    throw InvalidArgument(to_json(value) + " is neither \"env\" nor \"tcp\"");
  }
}

void read_option(const std::string& name, const Value& value, JoinOptions& options) {
  if (name == "backend") return read_backend(value, options);
  if (name == "timeout_s") return read_timeout(value, options);
  if (name == "init_method") return check_init_method(value);
  if (name == "interface") return void(options.interface = value.get<std::string>());
  if (name == "check_collectives") return void(options.check_collectives = value.get<bool>());
  throw InvalidArgument(
      "there is no such option: there are backend, check_collectives, init_method, interface and timeout_s");
}

JoinOptions read_options(const Config& config) {
  JoinOptions options;
  pt::Faults faults;
  for (const auto& [name, value] : config) {
    try {
      read_option(name, value, options);
    } catch (const InvalidArgument& error) {
      faults.add("\"" + name + "\": " + error.what());
    }
  }
  faults.throw_if_any("options of the process group");
  return options;
}

// Ignores SIGPIPE, unless it has a handler: Gloo writes to connections of dead ranks and must get an error. Python
// ignores SIGPIPE too.
void ignore_broken_pipes() {
  struct sigaction action{};
  if (::sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) ::signal(SIGPIPE, SIG_IGN);
}

class TorchGroupBackend final : public worker::GroupBackend {
 public:
  void check(const Config& options) const override {
    if (read_options(options).backend == "nccl" && !distributed::has_nccl())
      throw InvalidArgument("the backend nccl needs Cadre built with CUDA and NCCL");
  }
  void join(std::shared_ptr<worker::KeyValueStore> store, const worker::GroupPlace& place,
            const Config& options) override {
    ignore_broken_pipes();
    distributed::join_group(std::move(store), place, read_options(options));
  }
  void leave() override { distributed::leave_group(); }
};

const bool registered = [] {
  static TorchGroupBackend backend;
  worker::register_group_backend("torch", backend);
  return true;
}();

}  // namespace

void train::detail::use_torch_backend() {
  if (!registered) std::terminate();  // a reference, so that no compiler drops it
}

}  // namespace cadre
