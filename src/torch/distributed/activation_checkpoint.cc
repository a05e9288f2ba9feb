#include "cadre/train_torch/activation_checkpoint.h"

// torch.h comes first: these headers need its macros.
#include <ATen/ThreadLocalState.h>
#include <torch/csrc/autograd/custom_function.h>

#include <mutex>
#include <optional>
#include <set>
#include <tuple>

namespace cadre::train {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The states of libtorch's random generators that a function of these tensors may use.
class GeneratorStates {
 public:
  explicit GeneratorStates(const std::vector<Tensor>& tensors) {
    std::set<torch::Device, decltype([](const torch::Device& a, const torch::Device& b) {
               return std::tuple(a.type(), a.index()) < std::tuple(b.type(), b.index());
             })>
        devices{torch::Device(torch::kCPU)};
    for (const Tensor& tensor : tensors) {
      if (tensor.defined()) devices.insert(tensor.device());
    }
    for (const torch::Device& device : devices) {
      at::Generator generator = at::globalContext().defaultGenerator(device);
      const std::lock_guard lock(generator.mutex());
      states_.emplace_back(generator, generator.get_state());
    }
  }
  void restore() {
    for (auto& [generator, state] : states_) {
      const std::lock_guard lock(generator.mutex());
      generator.set_state(state);
    }
  }

 private:
  std::vector<std::pair<at::Generator, Tensor>> states_;
};

// Restores the states that it began with at its end.
struct GeneratorGuard {
  explicit GeneratorGuard(const std::vector<Tensor>& tensors) : states(tensors) {}
  ~GeneratorGuard() { states.restore(); }
  GeneratorGuard(const GeneratorGuard&) = delete;
  GeneratorGuard& operator=(const GeneratorGuard&) = delete;

  GeneratorStates states;
};

// A call, to be repeated as it was.
struct Call : torch::CustomClassHolder {
  explicit Call(detail::TensorFunction function) : function(std::move(function)) {}

  // Returns the outputs for inputs that have no past.
  std::vector<Tensor> repeat(const std::vector<Tensor>& inputs) {
    const GeneratorGuard now(inputs);
    random->restore();
    const at::ThreadLocalStateGuard as_then(thread_state);
    return function(inputs);
  }

  detail::TensorFunction function;
  at::ThreadLocalState thread_state = {};  // modes, mixed precision
  std::optional<GeneratorStates> random = {};
};

struct Recomputed : torch::autograd::Function<Recomputed> {
  static variable_list forward(AutogradContext* context, const c10::IValue& call_value, at::TensorList inputs) {
    const auto call = c10::static_intrusive_pointer_cast<Call>(call_value.toCapsule());
    context->saved_data["call"] = call_value;
    const std::vector<Tensor> kept(inputs.begin() + 1, inputs.end());
    context->save_for_backward(kept);
    call->random.emplace(kept);
    const at::ThreadLocalStateGuard as_outside(call->thread_state);
    const torch::NoGradGuard no_gradients;
    return call->function(kept);
  }

  static variable_list backward(AutogradContext* context, const variable_list& output_gradients) {
    const auto call = c10::static_intrusive_pointer_cast<Call>(context->saved_data["call"].toCapsule());
    std::vector<Tensor> inputs;
    for (const Tensor& saved : context->get_saved_variables())
      inputs.push_back(saved.defined() ? saved.detach().requires_grad_(saved.requires_grad()) : saved);
    const std::vector<Tensor> outputs = call->repeat(inputs);
    std::vector<Tensor> roots;
    std::vector<Tensor> gradients;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].requires_grad() || !output_gradients[i].defined()) continue;
      roots.push_back(outputs[i]);
      gradients.push_back(output_gradients[i]);
    }
    if (!roots.empty()) torch::autograd::backward(roots, gradients);
    variable_list of_arguments{Tensor(), Tensor()};  // for the call, and for the tensor that has a gradient always
    for (const Tensor& input : inputs) of_arguments.push_back(input.defined() ? input.grad() : Tensor());
    return of_arguments;
  }
};

}  // namespace

std::vector<Tensor> detail::checkpoint_activations(TensorFunction function, const std::vector<Tensor>& inputs) {
  if (!torch::GradMode::is_enabled()) return function(inputs);
  const auto call = c10::make_intrusive<Call>(std::move(function));
  // Without an argument that has a gradient, the function's parameters would get none.
  std::vector<Tensor> arguments{torch::empty({0}).requires_grad_()};
  arguments.insert(arguments.end(), inputs.begin(), inputs.end());
  return Recomputed::apply(c10::IValue::make_capsule(call), at::TensorList(arguments));
}

}  // namespace cadre::train
