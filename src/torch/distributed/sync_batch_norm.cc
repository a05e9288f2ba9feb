#include "torch/distributed/sync_batch_norm.h"

// torch.h comes first: these headers need its macros.
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "torch/distributed/collectives.h"
#include "torch/distributed/group.h"

namespace cadre::distributed {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr c10::DispatchKey kScopeKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

// Returns all dimensions but that of the channels.
std::vector<std::int64_t> reduced_dimensions(const Tensor& input) {
  std::vector<std::int64_t> dimensions{0};
  for (std::int64_t i = 2; i < input.dim(); ++i) dimensions.push_back(i);
  return dimensions;
}

// Returns a value by channel so that it can be combined with the input.
Tensor by_channel(const Tensor& values, const Tensor& input) {
  std::vector<std::int64_t> shape(static_cast<std::size_t>(input.dim()), 1);
  shape[1] = -1;
  return values.view(shape);
}

// The moments of each channel, of all ranks together.
struct Moments {
  Tensor mean;
  Tensor variance;  // biased
  double count = 0;
};

// Combines the moments of parts as Chan et al., "Updating Formulae and a Pairwise Algorithm for Computing Sample
// Variances", 1979: a sum of squares would lose digits.
Moments moments_of_all(const Tensor& input) {
  const std::int64_t channels = input.size(1);
  const std::int64_t own_count = channels == 0 ? 0 : input.numel() / channels;
  Tensor own = torch::zeros({2 * channels + 1}, input.options());
  if (own_count > 0) {
    const auto [variance, mean] = at::var_mean(input, reduced_dimensions(input), /*unbiased=*/false);
    own = torch::cat({mean, variance * static_cast<double>(own_count),
                      torch::full({1}, static_cast<double>(own_count), input.options())});
  }
  const Tensor all = torch::stack(distributed::all_gather(distributed::current_group(), own));
  const Tensor means = all.narrow(1, 0, channels);
  const Tensor counts = all.narrow(1, 2 * channels, 1);
  const double count = counts.to(torch::kDouble).sum().item<double>();
  const Tensor mean = (means * counts).sum(0) / count;
  const Tensor squares = all.narrow(1, channels, channels).sum(0) + ((means - mean).square() * counts).sum(0);
  return {mean, squares / count, count};
}

using OptionalTensor = std::optional<Tensor>;

bool is_there(const OptionalTensor& tensor) { return tensor && tensor->defined(); }

struct SyncBatchNorm : torch::autograd::Function<SyncBatchNorm> {
  static Tensor forward(AutogradContext* context, const Tensor& input, const OptionalTensor& weight,
                        const OptionalTensor& bias, const OptionalTensor& running_mean,
                        const OptionalTensor& running_variance, double momentum, double epsilon) {
    const Tensor values = input.scalar_type() == torch::kDouble ? input : input.to(torch::kFloat);
    const Moments moments = moments_of_all(values);
    if (is_there(running_mean)) {
      const double unbiased = moments.count / std::max(moments.count - 1, 1.0);
      Tensor(*running_mean).mul_(1 - momentum).add_(moments.mean, momentum);
      Tensor(*running_variance).mul_(1 - momentum).add_(moments.variance * unbiased, momentum);
    }
    const Tensor scale = (moments.variance + epsilon).rsqrt();
    context->save_for_backward({input, weight.value_or(Tensor()), moments.mean, scale});
    context->saved_data["count"] = moments.count;
    context->saved_data["has_bias"] = is_there(bias);
    const Tensor normalized = (values - by_channel(moments.mean, input)) * by_channel(scale, input);
    Tensor output = is_there(weight) ? normalized * by_channel(*weight, input) : normalized;
    if (is_there(bias)) output = output + by_channel(*bias, input);
    return output.to(input.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor& input = saved[0];
    const Tensor& weight = saved[1];
    const Tensor& mean = saved[2];
    const Tensor& scale = saved[3];
    const double count = context->saved_data["count"].toDouble();
    const Tensor gradient = gradients[0].to(mean.scalar_type());
    const Tensor centred = input.to(mean.scalar_type()) - by_channel(mean, input);
    const std::vector<std::int64_t> dimensions = reduced_dimensions(input);
    const Tensor sum = gradient.sum(dimensions);
    const Tensor product_sum = (gradient * centred).sum(dimensions);
    Tensor sums = torch::stack({sum, product_sum});
    distributed::all_reduce(distributed::current_group(), sums);
    const Tensor of_mean = by_channel(sums[0] / count, input);
    const Tensor of_scale = by_channel(sums[1] / count * scale.square(), input);
    Tensor of_input = (gradient - of_mean - centred * of_scale) * by_channel(scale, input);
    if (weight.defined()) of_input = of_input * by_channel(weight, input);
    return {of_input.to(input.scalar_type()),
            weight.defined() ? (product_sum * scale).to(weight.scalar_type()) : Tensor(),
            context->saved_data["has_bias"].toBool() ? sum : Tensor(),
            Tensor(),
            Tensor(),
            Tensor(),
            Tensor()};
  }
};

// Is called in place of at::batch_norm.
Tensor batch_norm(const Tensor& input, const OptionalTensor& weight, const OptionalTensor& bias,
                  const OptionalTensor& running_mean, const OptionalTensor& running_variance, bool is_training,
                  double momentum, double epsilon, bool uses_cudnn) {
  const c10::impl::ExcludeDispatchKeyGuard without_key(kScopeKey);
  if (is_training && current_group().process_group)
    return SyncBatchNorm::apply(input, weight, bias, running_mean, running_variance, momentum, epsilon);
  return at::batch_norm(input, weight, bias, running_mean, running_variance, is_training, momentum, epsilon,
                        uses_cudnn);
}

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) { library.fallback(torch::CppFunction::makeFallthrough()); }
TORCH_LIBRARY_IMPL(aten, TESTING_ONLY_GenericMode, library) { library.impl("batch_norm", &batch_norm); }

}  // namespace

SyncBatchNormScope::SyncBatchNormScope() : guard_(kScopeKey) {}

}  // namespace cadre::distributed
