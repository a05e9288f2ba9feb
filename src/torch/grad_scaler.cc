#include "cadre/torch/grad_scaler.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "cadre/error.h"
#include "cadre/faults.h"
#include "torch/optimizer_state.h"
#include "torch/parts.h"
#include "torch/state_fields.h"

namespace cadre {
namespace {

void check(const GradScalerOptions& options, Faults& faults) {
  faults.unless(options.init_scale > 0 && std::isfinite(options.init_scale), "init_scale",
                c10::str("it is ", options.init_scale, "; it must be above 0"));
  faults.unless(options.growth_factor > 1, "growth_factor",
                c10::str("it is ", options.growth_factor, "; it must be above 1"));
  faults.unless(options.backoff_factor > 0 && options.backoff_factor < 1, "backoff_factor",
                c10::str("it is ", options.backoff_factor, "; it must be above 0 and below 1"));
  faults.unless(options.growth_interval >= 1, "growth_interval",
                c10::str("it is ", options.growth_interval, "; it must be at least 1"));
}

}  // namespace

GradScaler::GradScaler(GradScalerOptions options) : options_(options), scale_(options.init_scale) {
  Faults faults;
  check(options_, faults);
  faults.throw_as("a GradScaler cannot be made");
}

void GradScaler::move_to(const torch::Device& device) {
  if (scale_tensor_.defined()) return;
  scale_tensor_ = torch::full({}, scale_, torch::TensorOptions(device).dtype(torch::kFloat));
  growth_tensor_ = torch::full({}, growth_tracker_, torch::TensorOptions(device).dtype(torch::kInt));
}

torch::Tensor GradScaler::scale(const torch::Tensor& loss) {
  if (!options_.enabled) return loss;
  move_to(loss.device());
  return loss * scale_tensor_.to(loss.device());
}

void GradScaler::unscale_(torch::optim::Optimizer& optimizer) {
  if (!options_.enabled) return;
  if (!scale_tensor_.defined()) throw InvalidArgument("GradScaler::unscale_ was called before scale");
  const auto found = optimizers_.find(&optimizer);
  if (found != optimizers_.end())
    throw InvalidArgument(found->second.has_stepped ? "GradScaler::unscale_ was called after step"
                                                    : "GradScaler::unscale_ was called twice since update");
  const torch::NoGradGuard no_grad;
  const torch::Tensor inverse = scale_tensor_.to(torch::kDouble).reciprocal().to(torch::kFloat);
  torch::Tensor found_inf = torch::zeros({}, scale_tensor_.options());
  // Looks at all ranks' parts: the step must be taken on all of them, or on none.
  const std::vector<torch::Tensor> parameters = pt::all_parameters(optimizer);
  for (const torch::Tensor& parameter : parameters) {
    const torch::Tensor& gradient = parameter.grad();
    if (!gradient.defined()) continue;
    if (gradient.scalar_type() == torch::kHalf)
      throw InvalidArgument(
          "GradScaler: a gradient is in half precision; keep parameters in float, and compute in "
          "half precision by train::autocast");
    const torch::Tensor values = gradient.is_sparse() ? gradient._values() : gradient;
    torch::Tensor found_here = found_inf.to(values.device());
    at::_amp_foreach_non_finite_check_and_unscale_(torch::TensorList(values), found_here, inverse.to(values.device()));
    if (!found_here.is_same(found_inf)) found_inf.add_(found_here.to(found_inf.device()));
  }
  for (const pt::OwnerOfParts* const owner : pt::owners_of_parts(parameters)) owner->sum(found_inf);
  optimizers_[&optimizer] = {.found_inf = found_inf};
}

bool GradScaler::step(torch::optim::Optimizer& optimizer) {
  if (!options_.enabled) return optimizer.step(), true;
  if (!optimizers_.contains(&optimizer)) unscale_(optimizer);
  Unscaled& unscaled = optimizers_.at(&optimizer);
  if (std::exchange(unscaled.has_stepped, true))
    throw InvalidArgument("GradScaler::step was called twice since update");
  const bool is_finite = unscaled.found_inf.item<float>() == 0;
  if (is_finite) optimizer.step();
  return is_finite;
}

void GradScaler::update() {
  if (!options_.enabled) return;
  if (optimizers_.empty()) throw InvalidArgument("GradScaler::update was called before step");
  const torch::NoGradGuard no_grad;
  torch::Tensor found_inf = torch::zeros({}, scale_tensor_.options());
  for (const auto& [optimizer, unscaled] : optimizers_) found_inf.add_(unscaled.found_inf);
  at::_amp_update_scale_(scale_tensor_, growth_tensor_, found_inf, options_.growth_factor, options_.backoff_factor,
                         options_.growth_interval);
  optimizers_.clear();
}

double GradScaler::get_scale() const {
  if (!options_.enabled) return 1;
  return scale_tensor_.defined() ? scale_tensor_.item<double>() : scale_;
}

// Goes through the members by the names of Python's state_dict().
struct GradScalerFields final : optim::detail::WithState {
  explicit GradScalerFields(GradScaler& one) : scaler(one) {}

  void visit(optim::detail::StateFields& fields) override {
    fields.field("scale", scaler.scale_);
    fields.field("growth_factor", scaler.options_.growth_factor);
    fields.field("backoff_factor", scaler.options_.backoff_factor);
    fields.field("growth_interval", scaler.options_.growth_interval);
    fields.field("_growth_tracker", scaler.growth_tracker_);
  }

  GradScaler& scaler;
};

Dict GradScaler::state_dict() const {
  if (!options_.enabled) return {};
  GradScaler copy = *this;
  copy.scale_ = get_scale();
  if (growth_tensor_.defined()) copy.growth_tracker_ = growth_tensor_.item<std::int64_t>();
  GradScalerFields fields(copy);
  return optim::detail::write_state(fields);
}

void GradScaler::load_state_dict(const Dict& state) { prepare(state)(); }

std::function<void()> GradScaler::prepare(const Dict& state) {
  if (!options_.enabled) return [] {};
  if (state.empty())
    throw InvalidArgument("the state of the GradScaler is empty: it was saved by one that was not enabled");
  GradScaler copy(options_);
  GradScalerFields fields(copy);
  optim::detail::read_state(state, "a GradScaler", fields);
  GradScalerOptions read = copy.options_;
  read.init_scale = copy.scale_;
  Faults faults;
  check(read, faults);
  faults.throw_as("this is no state of a GradScaler");
  return [this, copy] { *this = copy; };
}

}  // namespace cadre
