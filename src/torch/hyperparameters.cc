#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "cadre/torch.h"
#include "torch/faults.h"
#include "torch/optimizer_kind.h"

namespace cadre {
namespace {

using pt::Range;

// Read an option. Throw InvalidArgument if the value has another type.
void read_option(const cadre::Value& value, double& option) { option = value.get<double>(); }
void read_option(const cadre::Value& value, bool& option) { option = value.get<bool>(); }
void read_option(const cadre::Value& value, std::tuple<double, double>& option) {
  const auto pair = value.get<std::vector<double>>();
  if (pair.size() != 2) throw InvalidArgument(to_json(value) + " is not a list of two numbers");
  option = {pair[0], pair[1]};
}

// Returns the fault of a value; empty if it is in range.
std::string range_fault(double value, Range range) {
  if (!std::isfinite(value)) return "is not finite";
  if (range == Range::not_negative && value < 0) return "is negative";
  if (range == Range::zero_to_one_exclusive && !(value >= 0 && value < 1)) return "is not in [0, 1)";
  return {};
}
std::string range_fault(bool, Range) { return {}; }
std::string range_fault(const std::tuple<double, double>& pair, Range range) {
  const std::string first = range_fault(std::get<0>(pair), range);
  return first.empty() ? range_fault(std::get<1>(pair), range) : first;
}

template <class Options>
void read_options(const Config& config, Options& options, pt::Faults& faults) {
  pt::visit_options(options, [&](const std::string& name, auto& option, Range range) {
    // The optimizer uses this option only when it is created.
    if (name == "initial_accumulator_value") return;
    const Value* const value = config.find(name);
    if (value == nullptr) return;
    try {
      read_option(*value, option);
    } catch (const InvalidArgument& error) {
      return faults.add("\"" + name + "\": " + error.what());
    }
    const std::string fault = range_fault(option, range);
    if (!fault.empty()) faults.add("\"" + name + "\": " + to_json(*value) + " " + fault);
  });
}

void check_together(const torch::optim::SGDOptions& options, pt::Faults& faults) {
  if (options.nesterov() && (options.momentum() <= 0 || options.dampening() != 0)) {
    faults.add("\"nesterov\" needs a momentum above 0 and no dampening");
  }
}
void check_together(const torch::optim::OptimizerOptions&, pt::Faults&) {}

template <class Kind>
void set_options(torch::optim::Optimizer& optimizer, const Config& config) {
  using Options = typename Kind::Options;
  pt::Faults faults;
  std::vector<std::unique_ptr<Options>> changed;
  for (const auto& group : optimizer.param_groups()) {
    pt::Faults group_faults;
    changed.push_back(std::make_unique<Options>(static_cast<const Options&>(group.options())));
    read_options(config, *changed.back(), group_faults);
    check_together(*changed.back(), group_faults);
    if (faults.empty()) faults = std::move(group_faults);  // groups differ little: report one
  }
  faults.throw_if_any(std::string("hyper-parameters of ") + Kind::name);
  for (std::size_t i = 0; i < changed.size(); ++i) {
    auto& group = optimizer.param_groups()[i];
    for (const torch::Tensor& parameter : group.params()) {
      const auto state = optimizer.state().find(parameter.unsafeGetTensorImpl());
      if (state == optimizer.state().end()) continue;
      pt::complete_state<Kind>(static_cast<typename Kind::State&>(*state->second), *changed[i], parameter);
    }
    group.set_options(std::move(changed[i]));
  }
}

// Its options are of other types, and it has one group.
void set_lbfgs_options(torch::optim::LBFGS& optimizer, const Config& config) {
  using Options = torch::optim::LBFGSOptions;
  auto changed = std::make_unique<Options>(static_cast<const Options&>(optimizer.param_groups().front().options()));
  pt::Faults faults;
  const auto read = [&](const char* name, auto& option, auto least) {
    const Value* const value = config.find(name);
    if (value == nullptr) return;
    try {
      option = value->get<std::remove_cvref_t<decltype(option)>>();
    } catch (const InvalidArgument& error) {
      return faults.add("\"" + std::string(name) + "\": " + error.what());
    }
    if (!(option >= least && std::isfinite(static_cast<double>(option))))
      faults.add("\"" + std::string(name) + "\": " + to_json(*value) + " is not " + c10::str(least) + " or more");
  };
  read("lr", changed->lr(), 0.0);
  read("max_iter", changed->max_iter(), std::int64_t{1});
  read("tolerance_grad", changed->tolerance_grad(), 0.0);
  read("tolerance_change", changed->tolerance_change(), 0.0);
  faults.throw_if_any("hyper-parameters of LBFGS");
  optimizer.param_groups().front().set_options(std::move(changed));
}

}  // namespace

void set_hyperparameters(torch::optim::Optimizer& optimizer, const Config& config) {
  if (auto* const lbfgs = dynamic_cast<torch::optim::LBFGS*>(&optimizer)) return set_lbfgs_options(*lbfgs, config);
  pt::with_kind(optimizer, [&](auto kind) { set_options<decltype(kind)>(optimizer, config); });
}

}  // namespace cadre
