#include "torch/random_states.h"

#include <mutex>
#include <utility>
#include <vector>

#include "cadre/error.h"

namespace cadre::pt {
namespace {

at::Generator generator_of(c10::Device device) {
  return device.is_cpu() ? at::detail::getDefaultCPUGenerator() : at::globalContext().defaultGenerator(device);
}

torch::Tensor state_of(c10::Device device) {
  at::Generator generator = generator_of(device);
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_state(c10::Device device, const torch::Tensor& state) {
  at::Generator generator = generator_of(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

std::size_t gpus_there() { return static_cast<std::size_t>(torch::cuda::device_count()); }

c10::Device gpu(std::size_t number) { return {c10::kCUDA, static_cast<c10::DeviceIndex>(number)}; }

// Returns a state of the generator's own size: another one would be an error of libtorch's in the middle of the load.
torch::Tensor checked(const Value& saved, c10::Device device) {
  const auto* const state = saved.get_if<torch::Tensor>();
  if (state == nullptr || state->scalar_type() != torch::kByte || state->dim() != 1)
    throw InvalidArgument(
        c10::str("the state of ", device.str(), " is ", saved.kind_name(), ", expected a tensor of bytes"));
  const torch::Tensor own = state_of(device);
  if (state->numel() != own.numel())
    throw InvalidArgument(c10::str("the state of ", device.str(), " has ", state->numel(), " bytes, and its generator ",
                                   own.numel(), ": another kind of it was saved"));
  return *state;
}

}  // namespace

Value random_states() {
  std::vector<Value> gpus;
  for (std::size_t number = 0; number < gpus_there(); ++number) gpus.emplace_back(state_of(gpu(number)));
  DictBuilder states;
  states.add("cpu", state_of(c10::Device(c10::kCPU)));
  states.add("cuda", make_container(Container::Kind::list, std::move(gpus)));
  return states.take();
}

std::function<void()> prepare_random_states(const Value& saved) {
  const Value* const cpu = saved.find("cpu");
  const Value* const gpus = saved.find("cuda");
  if (cpu == nullptr || gpus == nullptr || gpus->list() == nullptr)
    throw InvalidArgument("these are no states of generators: expected {\"cpu\": state, \"cuda\": [states]}");
  std::vector<std::pair<c10::Device, torch::Tensor>> states{
      {c10::Device(c10::kCPU), checked(*cpu, c10::Device(c10::kCPU))}};
  const std::vector<Value>& of_gpus = gpus->list()->items;
  for (std::size_t number = 0; number < std::min(of_gpus.size(), gpus_there()); ++number)
    states.emplace_back(gpu(number), checked(of_gpus[number], gpu(number)));
  return [states = std::move(states)] {
    for (const auto& [device, state] : states) set_state(device, state);
  };
}

}  // namespace cadre::pt
