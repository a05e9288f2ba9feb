// The part of PyTorch's DistributedDataParallel that Python implements around c10d::Reducer.
#include <torch/torch.h>
// torch.h comes first: these headers need its macros.
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/version.h>
#include <torch/csrc/distributed/c10d/logger.hpp>
#include <torch/csrc/distributed/c10d/reducer.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "cadre/train_torch/model.h"
#include "torch/distributed/collectives.h"
#include "torch/distributed/replicas.h"
#include "torch/distributed/sync_batch_norm.h"
#include "torch/faults.h"

// The reducer is not a public interface: for another version compare its constructor, and the order of the calls with
// torch/nn/parallel/distributed.py.
static_assert(TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 11 && TORCH_VERSION_MINOR <= 15);

namespace cadre::train {
namespace {

using distributed::Group;

constexpr std::size_t first_bucket_bytes = std::size_t{1} << 20;

// The trained parameters without duplicates: a parameter shared by two modules has two names.
struct TrainedParameters {
  std::vector<torch::Tensor> tensors;
  std::unordered_map<std::size_t, std::string> names;
  std::vector<bool> have_sparse_gradients;
};

std::unordered_set<torch::TensorImpl*> sparse_weights(const torch::nn::Module& model) {
  std::unordered_set<torch::TensorImpl*> weights;
  for (const auto& module : model.modules(/*include_self=*/false)) {
    if (const auto* embedding = module->as<torch::nn::Embedding>(); embedding && embedding->options.sparse()) {
      weights.insert(embedding->weight.unsafeGetTensorImpl());
    }
    if (const auto* bag = module->as<torch::nn::EmbeddingBag>(); bag && bag->options.sparse()) {
      weights.insert(bag->weight.unsafeGetTensorImpl());
    }
  }
  return weights;
}

TrainedParameters trained_parameters(const torch::nn::Module& model) {
  const std::unordered_set<torch::TensorImpl*> sparse = sparse_weights(model);
  std::unordered_set<torch::TensorImpl*> seen;
  TrainedParameters trained;
  for (const auto& item : model.named_parameters()) {
    torch::TensorImpl* const impl = item.value().unsafeGetTensorImpl();
    if (!item.value().requires_grad() || !seen.insert(impl).second) continue;
    trained.names[trained.tensors.size()] = item.key();
    trained.tensors.push_back(item.value());
    trained.have_sparse_gradients.push_back(sparse.contains(impl));
  }
  return trained;
}

// An identity at the end of the graph, whose backward pass runs first: Python's _DDPSink. Outputs that the loss does
// not use get no gradient through it, which tells the reducer that they are unused; in the first pass of a static
// graph it makes the reducer wait for the end of the backward pass. Python omits it in later passes of a static graph:
// then the reducer waits for parameters that only an unused output depends on, and averages nothing.
struct Sink : torch::autograd::Function<Sink> {
  struct State : torch::CustomClassHolder {
    std::weak_ptr<c10d::Reducer> reducer;  // the graph may outlive the model
    bool delays_reduction = false;
  };

  static torch::autograd::variable_list forward(torch::autograd::AutogradContext* context, const c10::IValue& state,
                                                at::TensorList outputs) {
    context->saved_data["state"] = state;
    context->set_materialize_grads(false);
    torch::autograd::variable_list copies;
    for (const torch::Tensor& output : outputs) copies.push_back(output.clone());
    return copies;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 const torch::autograd::variable_list& gradients) {
    const auto state = c10::static_intrusive_pointer_cast<State>(context->saved_data["state"].toCapsule());
    if (const auto reducer = state->reducer.lock(); reducer && state->delays_reduction) {
      state->delays_reduction = false;
      torch::autograd::Engine::get_default_engine().queue_callback([reducer] { reducer->delay_all_reduce(); });
    }
    torch::autograd::variable_list of_inputs{torch::Tensor()};  // for the argument `state`
    of_inputs.insert(of_inputs.end(), gradients.begin(), gradients.end());
    return of_inputs;
  }
};

// A reducer that never rebuilds its buckets. DistributedDataParallel rebuilds them after the first pass, in the order
// in which gradients arrived. With three or more ranks the order of summation depends on the place in a bucket, so a
// continued run would get different parameters from an uninterrupted one.
class Reducer final : public c10d::Reducer {
 public:
  template <class... Arguments>
  explicit Reducer(Arguments&&... arguments) : c10d::Reducer(std::forward<Arguments>(arguments)...) {
    has_rebuilt_bucket_ = true;
  }
};

class DistributedDataParallel final : public detail::DataParallel {
 public:
  DistributedDataParallel(torch::nn::Module& model, Group group, const PrepareModelOptions& options)
      : model_(model), group_(std::move(group)), options_(options) {
    distributed::check_equal_layouts(group_, model_, "prepare_model");
    std::vector<torch::Tensor> state = model_.parameters();
    for (const torch::Tensor& buffer : model_.buffers()) state.push_back(buffer);
    distributed::copy_from_rank_zero(group_, distributed::values_of(state));
  }

  void before_forward() override {
    const bool has_gradients = torch::GradMode::is_enabled();
    is_synchronized_ = has_gradients && synchronize;
    if (is_synchronized_) {
      distributed::check_intact(group_, "The forward pass of a model");
      if (reducer_ == nullptr) make_reducer();
      reducer_->prepare_for_forward();
    }
    if (has_gradients && reducer_ != nullptr) require_whole_reduction();
    if (options_.sync_batch_norm) sync_batch_norm_.emplace();
    if (buffers_may_differ_ && options_.broadcast_buffers)
      distributed::copy_from_rank_zero(group_, distributed::values_of(model_.buffers()));
  }

  void end_forward() noexcept override { sync_batch_norm_.reset(); }

  void after_forward(std::span<torch::Tensor* const> outputs, bool are_known) override {
    buffers_may_differ_ = is_synchronized_;
    if (!is_synchronized_) return;
    const bool searches = options_.find_unused_parameters && !options_.static_graph;
    if ((searches || options_.static_graph) && !are_known) throw InvalidArgument(unknown_outputs);
    std::vector<torch::Tensor> searched;
    if (searches) {
      for (const torch::Tensor* output : outputs) searched.push_back(*output);
    }
    reducer_->prepare_for_backward(searched);
    if (searches || options_.static_graph) lead_through_sink(outputs);
  }

 private:
  static constexpr const char* unknown_outputs =
      "find_unused_parameters and static_graph look for tensors in what forward() returns, and cannot look into its "
      "type; "
      "return a tensor, or a tuple, pair, array, vector, map or optional of tensors";

  // Throws if the last backward pass has not averaged all gradients.
  void require_whole_reduction() {
    try {
      reducer_->rebuild_buckets();  // rebuilds nothing, see Reducer, but checks that
    } catch (c10::Error& error) {
      TORCH_RETHROW(error,
                    "If instead the last backward pass has thrown: gradients are averaged no longer until, on all "
                    "ranks, the model is given to prepare_model again, and its gradients are zeroed");
    }
  }

  // Called only when the reducer is needed: for a static graph, the reducer takes the first backward pass that it sees
  // as the whole graph, even one that only accumulates gradients.
  void make_reducer() {
    const TrainedParameters trained = trained_parameters(model_);
    const auto cap = static_cast<std::size_t>(options_.bucket_cap_bytes);
    const std::size_t first_cap = std::min(first_bucket_bytes, cap);
    reducer_ = std::make_shared<Reducer>(
        trained.tensors, make_buckets(trained, {first_cap, cap}), group_.process_group, trained.have_sparse_gradients,
        options_.bucket_cap_bytes, options_.find_unused_parameters, options_.gradient_as_bucket_view, trained.names,
        static_cast<std::int64_t>(first_cap), /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false,
        /*bucket_bytes_cap_list=*/std::vector<std::int64_t>());
    if (options_.compress_gradients) {
      reducer_->register_builtin_comm_hook(c10d::BuiltinCommHookType::FP16_COMPRESS);
    }
    if (options_.static_graph) reducer_->set_static_graph();
    // The reducer reports changed graphs to its logger without checking that it has one.
    logger_ = std::make_shared<c10d::Logger>(reducer_);
    reducer_->set_logger(logger_);
    logger_->set_construction_data_and_log(/*module_name=*/"", /*device_ids=*/{}, /*output_device=*/-1,
                                           options_.broadcast_buffers, options_.sync_batch_norm, options_.static_graph);
    sink_->reducer = reducer_;
    sink_->delays_reduction = options_.static_graph;
  }

  // Assigns parameters to buckets in the usual order of gradients: the last parameter first.
  static std::vector<std::vector<std::size_t>> make_buckets(const TrainedParameters& trained,
                                                            const std::vector<std::size_t>& caps) {
    std::vector<torch::Tensor> tensors(trained.tensors.rbegin(), trained.tensors.rend());
    std::vector<std::int64_t> indices(tensors.size());
    std::iota(indices.rbegin(), indices.rend(), 0);
    // have_sparse_gradients is looked up by these indices.
    return std::get<0>(c10d::compute_bucket_assignment_by_size(tensors, caps, trained.have_sparse_gradients, indices));
  }

  void lead_through_sink(std::span<torch::Tensor* const> outputs) const {
    std::vector<torch::Tensor*> targets;
    std::vector<torch::Tensor> tensors;
    for (torch::Tensor* output : outputs) {
      if (output->grad_fn() == nullptr) continue;
      targets.push_back(output);
      tensors.push_back(*output);
    }
    if (tensors.empty()) return;
    const auto results = Sink::apply(c10::IValue::make_capsule(sink_), at::TensorList(tensors));
    for (std::size_t i = 0; i < targets.size(); ++i) *targets[i] = results[i];
  }

  torch::nn::Module& model_;  // the model's owner also owns this object
  Group group_;
  PrepareModelOptions options_;
  std::shared_ptr<Reducer> reducer_;
  std::shared_ptr<c10d::Logger> logger_;
  c10::intrusive_ptr<Sink::State> sink_ = c10::make_intrusive<Sink::State>();
  std::optional<distributed::SyncBatchNormScope> sync_batch_norm_;  // during a forward pass
  bool is_synchronized_ = false;
  bool buffers_may_differ_ = false;  // since the last synchronized pass
};

void check(const torch::nn::Module& model, const PrepareModelOptions& options) {
  pt::Faults faults;
  if (options.bucket_cap_bytes < 1) {
    faults.add("a bucket_cap_bytes of " + std::to_string(options.bucket_cap_bytes));
  }
  const std::vector<torch::Tensor> parameters = model.parameters();
  if (std::ranges::none_of(parameters, [](const torch::Tensor& tensor) { return tensor.requires_grad(); })) {
    faults.add("the model has no parameter that requires a gradient, so there is nothing to train");
  }
  faults.throw_if_any("prepare_model");
}

}  // namespace

std::shared_ptr<detail::DataParallel> detail::make_data_parallel(torch::nn::Module& model,
                                                                 const PrepareModelOptions& options) {
  check(model, options);
  Group group = distributed::current_group();
  if (options.move_to_device) model.to(group.device);
  if (!group.process_group) return nullptr;
  return std::make_shared<DistributedDataParallel>(model, std::move(group), options);
}

NoSync::NoSync(std::shared_ptr<detail::DataParallel> model) : model_(std::move(model)) {
  if (model_ != nullptr) former_ = std::exchange(model_->synchronize, false);
}

NoSync::~NoSync() {
  if (model_ != nullptr) model_->synchronize = former_;
}

}  // namespace cadre::train
