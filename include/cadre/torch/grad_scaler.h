/// \file
/// Scaling of gradients for training in half precision, where small ones would become 0: the loss is multiplied by a
/// scale, gradients are divided by it before the optimizer's step, and a step whose gradients are infinite or NaN is
/// left out, and the scale reduced. As torch.amp.GradScaler of PyTorch 2.13, with its values and state. Not needed for
/// bfloat16.
///
///     GradScaler scaler;
///     …
///     scaler.scale(loss).backward();
///     scaler.unscale_(optimizer);  // only where gradients are looked at, as by clip_grad_norm_
///     scaler.step(optimizer);
///     scaler.update();
///
/// In data-parallel training each rank has its own: gradients are the same on all, so the scales are.
///
/// Threads: any, but each object in one thread at a time.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <map>

#include "cadre/value.h"

namespace cadre {

/// Options of GradScaler, with Python's names and defaults.
struct GradScalerOptions {
  double init_scale = 65536;            ///< the first scale, above 0
  double growth_factor = 2;             ///< by which the scale grows; above 1
  double backoff_factor = 0.5;          ///< by which it is multiplied after a step that was left out; 0 to 1
  std::int64_t growth_interval = 2000;  ///< steps in series without one that was left out, before it grows; at least 1
  bool enabled = true;                  ///< false: nothing is scaled, and each step taken
};

/// Scales losses and gradients.
class GradScaler {
 public:
  /// Throws InvalidArgument that names all options outside their ranges.
  explicit GradScaler(GradScalerOptions options = {});

  /// Returns the loss multiplied by the scale.
  torch::Tensor scale(const torch::Tensor& loss);
  /// Divides the gradients of an optimizer's parameters by the scale, once before its step. Throws InvalidArgument if
  /// that was done already since update(), or for gradients in half precision.
  void unscale_(torch::optim::Optimizer& optimizer);
  /// Takes the optimizer's step unless a gradient is infinite or NaN; unscale_() comes first if it was not called.
  /// Returns true if it was taken. Throws InvalidArgument if it was called already since update().
  bool step(torch::optim::Optimizer& optimizer);
  /// Adapts the scale, after the steps of all optimizers. Throws InvalidArgument if there was none.
  void update();
  /// Returns the scale; 1 if it is not enabled.
  double get_scale() const;

  /// Returns the state, with the options, as Python's state_dict() has it; empty if it is not enabled.
  Dict state_dict() const;
  /// Takes a state over, with its options. Throws InvalidArgument that names all faults; then nothing has changed.
  void load_state_dict(const Dict& state);
  /// Internal: checks a state, and returns what takes it over.
  std::function<void()> prepare(const Dict& state);

 private:
  friend struct GradScalerFields;
  struct Unscaled {
    torch::Tensor found_inf = {};
    bool has_stepped = false;
  };
  void move_to(const torch::Device& device);

  GradScalerOptions options_;
  double scale_ = 0;                 // while there is no tensor of it
  std::int64_t growth_tracker_ = 0;  // likewise
  torch::Tensor scale_tensor_ = {};  // on the device of the losses
  torch::Tensor growth_tensor_ = {};
  std::map<const torch::optim::Optimizer*, Unscaled> optimizers_ = {};  // since update()
};

}  // namespace cadre
