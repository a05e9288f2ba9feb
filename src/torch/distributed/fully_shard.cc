#include "cadre/train_torch/fully_shard.h"

#include <malloc.h>

// torch.h comes first: these headers need its macros.
#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "cadre/train_torch/group.h"
#include "torch/distributed/collectives.h"
#include "torch/distributed/flat_layout.h"
#include "torch/distributed/group.h"
#include "torch/distributed/model_parts.h"
#include "torch/distributed/replicas.h"
#include "torch/distributed/shard_files.h"
#include "torch/distributed/sync_batch_norm.h"
#include "torch/distributed/watched_memory.h"
#include "torch/faults.h"
#include "torch/optimizer_state.h"
#include "torch/parts.h"
#include "torch/pt_file.h"

namespace cadre::train {
namespace {

using distributed::ElementRange;
using distributed::FlatLayout;
using distributed::Group;
using distributed::Shard;
using distributed::WatchedMemory;
using torch::Tensor;
namespace fs = std::filesystem;

constexpr std::size_t kMostReductions = 2;  // under way at the same time

constexpr const char* kCollection = "The collection of parameters";

// ---- Units

// The parameters that are collected together, in the model's order: those of a module, of one type, on one device.
struct NamedParameters {
  std::string module;
  std::vector<std::string> names = {};
  std::vector<Tensor> tensors = {};
};

class Partition {
 public:
  Partition(const torch::nn::Module& model, const ShardingPolicy& policy) { add(model, "", "", policy); }
  std::vector<NamedParameters> take() { return std::move(units_); }

 private:
  // `unit` is the name of the module whose unit the parameters belong to.
  void add(const torch::nn::Module& module, const std::string& name, const std::string& unit,
           const ShardingPolicy& policy) {
    const std::string prefix = name.empty() ? "" : name + ".";
    for (const auto& parameter : module.named_parameters(/*recurse=*/false)) {
      const Tensor& tensor = parameter.value();
      if (!tensor.defined() || !seen_.insert(tensor.unsafeGetTensorImpl()).second) continue;
      const auto [place, is_new] =
          indices_.try_emplace({unit, tensor.scalar_type(), tensor.device().str()}, units_.size());
      if (is_new) units_.push_back({.module = unit});
      units_[place->second].names.push_back(prefix + parameter.key());
      units_[place->second].tensors.push_back(tensor);
    }
    for (const auto& child : module.named_children()) {
      const std::string child_name = prefix + child.key();
      add(*child.value(), child_name, policy(child_name, *child.value()) ? child_name : unit, policy);
    }
  }

  std::vector<NamedParameters> units_;
  std::map<std::tuple<std::string, at::ScalarType, std::string>, std::size_t> indices_;
  std::set<const torch::TensorImpl*> seen_;
};

std::vector<std::int64_t> sizes_of(const std::vector<Tensor>& tensors) {
  std::vector<std::int64_t> sizes;
  for (const Tensor& tensor : tensors) sizes.push_back(tensor.numel());
  return sizes;
}

// Parameters, their memory while they are collected, and this rank's part of them.
class Unit {
 public:
  Unit(WatchedMemory::Owner& owner, NamedParameters named, const Group& group)
      : group_(group),
        named_(std::move(named)),
        layout_(sizes_of(named_.tensors), group.world_size),
        memory_(owner, torch::zeros({layout_.size()}, named_.tensors.front().options().requires_grad(false))) {
    const torch::NoGradGuard no_gradients;
    for (std::size_t i = 0; i < named_.tensors.size(); ++i) {
      Tensor& tensor = named_.tensors[i];
      elements_of(memory_.flat(), i).copy_(tensor.detach().flatten());
      memory_.place(tensor, layout_.begin_of(i));
      trained_ += tensor.requires_grad() ? 1 : 0;
    }
    part_ = own_part(memory_.flat());
    if (is_divided()) part_ = part_.clone();
    for (std::size_t i = 0; i < named_.tensors.size(); ++i)
      parts_.push_back(piece_of(part_, i).detach().requires_grad_(named_.tensors[i].requires_grad()));
    drop();
  }

  WatchedMemory* memory() { return &memory_; }
  const NamedParameters& named() const { return named_; }
  const std::vector<Tensor>& parts() const { return parts_; }
  ElementRange range(std::size_t i) const { return layout_.part_of(i, group_.rank); }
  std::size_t trained() const { return trained_; }  // parameters with a gradient

  // Begins to collect the parameters, unless they are there or on their way.
  void begin_to_collect() {
    if (memory_.is_there()) return;
    const torch::NoGradGuard no_gradients;
    memory_.allocate();
    Tensor whole = memory_.flat();
    Tensor part = part_;
    try {
      distributed::run_collective(group_, kCollection,
                                  [&] { collection_ = group_.process_group->_allgather_base(whole, part); });
    } catch (...) {
      memory_.free();
      throw;
    }
  }
  // After an error the collection stays, so that nobody uses memory whose values have not come.
  void collect() {
    begin_to_collect();
    if (collection_ == nullptr) return;
    distributed::run_collective(group_, kCollection, [&] { collection_->wait(); });
    collection_ = nullptr;
  }
  void drop() noexcept {
    if (!is_divided()) return;
    if (const auto collection = std::exchange(collection_, nullptr)) {
      try {
        collection->wait();
      } catch (const std::exception&) {  // another rank is gone: the next operation of the group says so
      }
    }
    memory_.free();
  }
  void take_over() const {
    if (is_divided() && memory_.is_there()) part_.copy_(own_part(memory_.flat()));
  }

  bool has_gradients() const {
    return std::ranges::any_of(named_.tensors, [](const Tensor& tensor) { return tensor.grad().defined(); });
  }
  // Returns the gradients of the whole parameters as one row, and drops them.
  Tensor take_gradients() {
    Tensor flat = torch::zeros_like(memory_.flat(), part_.options());
    for (std::size_t i = 0; i < named_.tensors.size(); ++i) {
      Tensor& gradient = named_.tensors[i].mutable_grad();
      if (!gradient.defined()) continue;
      elements_of(flat, i).copy_((gradient.is_sparse() ? gradient.to_dense() : gradient).flatten());
      gradient.reset();
    }
    return flat;
  }
  void drop_gradients() {
    arrived = 0;
    for (Tensor& tensor : named_.tensors) tensor.mutable_grad().reset();
  }
  // Adds those of this rank's part to what is there.
  void add_gradients(const Tensor& part) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (!parts_[i].requires_grad()) continue;
      Tensor& gradient = parts_[i].mutable_grad();
      const Tensor more = piece_of(part, i).variable_data();  // no view: Optimizer::zero_grad() calls detach_()
      gradient.defined() ? void(gradient.add_(more)) : void(gradient = more);
    }
  }
  Tensor own_part(const Tensor& flat) const {
    return flat.narrow(0, layout_.part_size() * group_.rank, layout_.part_size());
  }

  std::size_t arrived = 0;  // gradients of this backward pass

 private:
  bool is_divided() const { return group_.process_group != nullptr; }
  Tensor elements_of(const Tensor& flat, std::size_t i) const {
    return flat.narrow(0, layout_.begin_of(i), named_.tensors[i].numel());
  }
  // Returns a parameter's elements in a row of this rank's elements.
  Tensor piece_of(const Tensor& part, std::size_t i) const {
    const ElementRange own = range(i);
    if (own.size() == 0) return part.narrow(0, 0, 0);
    return part.narrow(0, layout_.begin_of(i) + own.begin - layout_.part_size() * group_.rank, own.size());
  }

  Group group_;
  NamedParameters named_;
  FlatLayout layout_;
  WatchedMemory memory_;
  c10::intrusive_ptr<c10d::Work> collection_;  // set while the parameters are on their way
  std::size_t trained_ = 0;
  Tensor part_;                // this rank's elements, with what lies between parameters
  std::vector<Tensor> parts_;  // by parameter; in part_
};

// Tells which unit a pass will use next, from the order of earlier passes: if one followed another the last two times,
// it is expected to follow again. All ranks use units in the same order, so they expect the same.
class UseOrder {
 public:
  // Notes a use. Returns the unit that is expected to be used next; nullptr: unknown.
  Unit* note(Unit& used, bool is_backward) {
    if (is_backward != std::exchange(is_backward_, is_backward)) last_ = nullptr;
    if (last_ != &used) {
      if (last_ != nullptr) {
        Next& next = next_[is_backward][last_];
        next.is_certain = next.unit == &used;
        next.unit = &used;
      }
      last_ = &used;
    }
    const auto found = next_[is_backward].find(&used);
    return found != next_[is_backward].end() && found->second.is_certain ? found->second.unit : nullptr;
  }
  void begin_pass() { last_ = nullptr; }

 private:
  struct Next {
    Unit* unit = nullptr;
    bool is_certain = false;
  };
  std::array<std::unordered_map<const Unit*, Next>, 2> next_ = {};  // of forward and of backward passes
  const Unit* last_ = nullptr;                                      // of this pass
  bool is_backward_ = false;
};

// ---- The model

class FullyShardedModelState final : public detail::FullySharded,
                                     public WatchedMemory::Owner,
                                     public pt::OwnerOfParts,
                                     public std::enable_shared_from_this<FullyShardedModelState> {
 public:
  FullyShardedModelState(torch::nn::Module& model, Group group, std::vector<NamedParameters> units,
                         const FullyShardOptions& options)
      : model_(model), group_(std::move(group)), options_(options) {
    for (NamedParameters& named : units) {
      Unit& unit = units_.emplace_back(*this, std::move(named), group_);
      unit_of_[unit.memory()] = &unit;
    }
    std::map<std::string, Tensor> by_name;
    for (const Unit& unit : units_) {
      for (std::size_t i = 0; i < unit.parts().size(); ++i) by_name[unit.named().names[i]] = unit.parts()[i];
    }
    for (const auto& parameter : model_.named_parameters()) {
      const auto found = by_name.find(parameter.key());
      if (found != by_name.end()) parts_.insert(found->first, found->second);
    }
    if (group_.process_group) marked_parts_.emplace(parts_.values(), *this);
  }

  void watch_gradients() {
    for (Unit& unit : units_) {
      for (const Tensor& tensor : unit.named().tensors) {
        if (!tensor.requires_grad()) continue;
        torch::autograd::impl::set_post_acc_grad_hooks(tensor, std::make_unique<GradientHook>(weak_from_this(), unit));
      }
    }
  }

  const torch::OrderedDict<std::string, Tensor>& parts() const override { return parts_; }
  void sum(Tensor& value) const override { distributed::all_reduce(group_, value); }

  void before_forward() override {
    distributed::check_intact(group_, "The forward pass of a model");
    if (passes_ == 0) {
      if (!is_in_backward()) {
        drop_broken_pass();
        order_.begin_pass();
      }
      if (wholes_ == 0) drop_all();  // their values may be those before a step of the optimizer
      if (group_.process_group && buffers_may_differ_ && options_.broadcast_buffers)
        distributed::copy_from_rank_zero(group_, distributed::values_of(model_.buffers()));
      buffers_may_differ_ = torch::GradMode::is_enabled();
      if (options_.sync_batch_norm) sync_batch_norm_.emplace();
      // Mixed precision would keep a short copy of each parameter until its end.
      was_caching_ = at::autocast::is_autocast_cache_enabled();
      at::autocast::set_autocast_cache_enabled(false);
    }
    ++passes_;
  }
  void after_forward(std::span<Tensor* const>, bool) override {}
  void end_forward() noexcept override {
    if (--passes_ > 0) return;
    sync_batch_norm_.reset();
    at::autocast::set_autocast_cache_enabled(was_caching_);
  }

  void before_use(std::span<WatchedMemory* const> used) override {
    const bool is_expected = passes_ > 0 || wholes_ > 0 || is_in_backward();
    for (WatchedMemory* const memory : used) {
      Unit& unit = *unit_of_.at(memory);
      if (!memory->is_there() && !is_expected) refuse_use(unit);
      if (ahead_ == &unit) ahead_ = nullptr;
      recent_.remove(&unit);
      recent_.push_front(&unit);
    }
    if (wholes_ == 0) make_room(used.size());
    for (WatchedMemory* const memory : used) unit_of_.at(memory)->collect();
    if (ahead_ != nullptr) ahead_->begin_to_collect();
  }

  void collect() override {
    if (wholes_ == 0) {
      drop_all();
      try {
        for (Unit& unit : units_) unit.collect();
      } catch (...) {
        drop_all();
        throw;
      }
    }
    ++wholes_;
  }
  void drop() noexcept override {
    if (--wholes_ > 0) return;
    take_over();
    drop_all();
  }

  double clip_grad_norm(double max_norm, double norm_type) override;
  void save(const fs::path& directory, const torch::optim::Optimizer* optimizer,
            const std::string& name) const override;
  void load(const fs::path& directory, torch::optim::Optimizer* optimizer, const std::string& name) override;

 private:
  // Tells the model that a gradient is complete.
  class GradientHook final : public torch::autograd::PostAccumulateGradHook {
   public:
    GradientHook(std::weak_ptr<FullyShardedModelState> model, Unit& unit) : model_(std::move(model)), unit_(unit) {}
    void operator()(const torch::autograd::Variable&) override {
      if (const auto model = model_.lock()) model->gradient_arrived(unit_);
    }
    void compiled_args(torch::dynamo::autograd::CompiledNodeArgs&) const override {}

   private:
    std::weak_ptr<FullyShardedModelState> model_;
    Unit& unit_;
  };
  // Gradients on their way to the ranks that have their parts.
  struct Reduction {
    Unit* unit;
    Tensor whole;
    Tensor part;
    c10::intrusive_ptr<c10d::Work> work;
  };

  [[noreturn]] static void refuse_use(const Unit& unit) {
    const std::vector<std::string>& names = unit.named().names;
    std::string some;
    for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 5); ++i) some += (i == 0 ? "" : ", ") + names[i];
    if (names.size() > 5) some += " and " + std::to_string(names.size() - 5) + " more";
    throw InvalidArgument("a parameter of a model that was divided among ranks, of " + some +
                          ", is used outside of forward() and backward(); FullyShardedModel::whole() collects all "
                          "parameters for other code, and parameters() returns this rank's parts for an optimizer");
  }

  static bool is_in_backward() { return torch::autograd::get_current_graph_task_id() >= 0; }

  // Chooses the unit that is collected ahead, while the first `used` of the recent ones are used, and drops those for
  // which there is no room then.
  void make_room(std::size_t used) {
    const auto most = static_cast<std::size_t>(options_.most_collected);
    Unit* const next = order_.note(*recent_.front(), is_in_backward());
    if (next != nullptr && next != ahead_ && !next->memory()->is_there() && used < most) {
      if (ahead_ != nullptr) ahead_->drop();
      ahead_ = next;
    }
    const std::size_t others = ahead_ == nullptr ? 0 : 1;
    while (recent_.size() > std::max(used, most - others)) {
      recent_.back()->drop();
      recent_.pop_back();
    }
  }

  // Takes the values of whole parameters over, each rank those of its parts.
  void take_over() const {
    const torch::NoGradGuard no_gradients;
    for (const Unit& unit : units_) unit.take_over();
  }

  void drop_all() {
    for (Unit& unit : units_) unit.drop();
    recent_.clear();
    ahead_ = nullptr;
  }

  void gradient_arrived(Unit& unit) {
    if (!synchronize) return;
    if (!ends_backward_) {
      const auto end = std::make_shared<std::weak_ptr<FullyShardedModelState>>(weak_from_this());
      torch::autograd::Engine::get_default_engine().queue_callback([end] {
        if (const auto model = end->lock()) model->end_backward();
      });
      end_of_backward_ = end;
      ends_backward_ = true;
    } else if (end_of_backward_.expired()) {
      throw InvalidArgument(
          "backward() of a model that was divided among ranks follows one that has thrown: call forward() again before "
          "it, and zero_grad()");
    }
    if (++unit.arrived == unit.trained()) reduce(unit);
  }

  void reduce(Unit& unit) {
    const torch::NoGradGuard no_gradients;
    unit.arrived = 0;
    Tensor whole = unit.take_gradients();
    if (!group_.process_group) return unit.add_gradients(whole);
    whole.div_(group_.world_size);
    Reduction next{.unit = &unit, .whole = whole, .part = torch::empty_like(unit.own_part(whole)), .work = {}};
    distributed::run_collective(group_, "The reduction of gradients",
                                [&] { next.work = group_.process_group->_reduce_scatter_base(next.part, next.whole); });
    reductions_.push_back(std::move(next));
    if (reductions_.size() > kMostReductions) finish_reduction();
  }
  void finish_reduction() {
    const torch::NoGradGuard no_gradients;
    const Reduction done = std::move(reductions_.front());
    reductions_.pop_front();
    distributed::run_collective(group_, "The reduction of gradients", [&] { done.work->wait(); });
    done.unit->add_gradients(done.part);
  }

  // Drops what a backward pass that has thrown has left: end_backward() was not called.
  void drop_broken_pass() {
    if (!std::exchange(ends_backward_, false)) return;
    for (; !reductions_.empty(); reductions_.pop_front())
      distributed::run_collective(group_, "The reduction of gradients", [&] { reductions_.front().work->wait(); });
    for (Unit& unit : units_) unit.drop_gradients();
  }

  // Parameters without a gradient in this pass count as ones with zeros if others of their unit have one.
  void end_backward() {
    ends_backward_ = false;
    ++backward_passes_;
    for (Unit& unit : units_) {
      if (unit.has_gradients()) reduce(unit);
    }
    while (!reductions_.empty()) finish_reduction();
    if (wholes_ == 0) drop_all();
    order_.begin_pass();
  }

  distributed::NamesByGroup names_by_group(const torch::optim::Optimizer& optimizer) const;
  distributed::ParameterParts parameter_parts() const;

  torch::nn::Module& model_;  // the model's owner also owns this object
  Group group_;
  FullyShardOptions options_;
  std::list<Unit> units_;
  std::unordered_map<const WatchedMemory*, Unit*> unit_of_;
  torch::OrderedDict<std::string, Tensor> parts_;
  std::optional<pt::MarkedParts> marked_parts_;  // unless there is one rank
  std::list<Unit*> recent_;                      // those that are collected, the last one used first; not under whole()
  UseOrder order_;
  Unit* ahead_ = nullptr;  // the one that is collected though it was not used yet
  std::deque<Reduction> reductions_;
  std::optional<distributed::SyncBatchNormScope> sync_batch_norm_;  // during a forward pass
  bool was_caching_ = true;                                         // before it
  int passes_ = 0;
  int wholes_ = 0;
  std::int64_t backward_passes_ = 0;  // until now, also before a checkpoint: files of one moment have the same
  bool ends_backward_ = false;        // true: end_backward() will be called, unless the pass throws
  std::weak_ptr<const void> end_of_backward_ = {};  // the engine's, which drops it if the pass throws
  bool buffers_may_differ_ = false;                 // since the last pass with gradients
};

double FullyShardedModelState::clip_grad_norm(double max_norm, double norm_type) {
  if (!(max_norm >= 0)) throw InvalidArgument("clip_grad_norm: a max_norm of " + std::to_string(max_norm));
  if (!(norm_type > 0)) throw InvalidArgument("clip_grad_norm: a norm_type of " + std::to_string(norm_type));
  const torch::NoGradGuard no_gradients;
  const bool is_largest = std::isinf(norm_type);
  Tensor norm = torch::zeros({}, torch::TensorOptions(torch::kDouble).device(group_.device));
  for (const auto& part : parts_) {
    const Tensor& gradient = part.value().grad();
    if (!gradient.defined() || gradient.numel() == 0) continue;
    const Tensor own = at::linalg_vector_norm(gradient, norm_type, {}, /*keepdim=*/false, torch::kDouble);
    norm = is_largest ? torch::maximum(norm, own.to(group_.device)) : norm + own.to(group_.device).pow(norm_type);
  }
  distributed::all_reduce(group_, norm, is_largest ? ReduceOp::max : ReduceOp::sum);
  const double total = is_largest ? norm.item<double>() : std::pow(norm.item<double>(), 1 / norm_type);
  const double scale = max_norm / (total + 1e-6);  // as Python
  if (scale < 1 || std::isnan(scale)) {
    for (const auto& part : parts_) {
      if (part.value().grad().defined()) part.value().grad().mul_(scale);
    }
  }
  return total;
}

// ---- Its files

// Returns the names of an optimizer's parameters.
distributed::NamesByGroup FullyShardedModelState::names_by_group(const torch::optim::Optimizer& optimizer) const {
  std::unordered_map<const torch::TensorImpl*, std::string> names;
  for (const auto& part : parts_) names[part.value().unsafeGetTensorImpl()] = part.key();
  distributed::NamesByGroup groups;
  for (const auto& group : optimizer.param_groups()) {
    groups.emplace_back();
    for (const Tensor& tensor : group.params()) {
      const auto found = names.find(tensor.unsafeGetTensorImpl());
      if (found == names.end())
        throw InvalidArgument("the optimizer has parameters that are not of FullyShardedModel::parameters()");
      groups.back().push_back(found->second);
    }
  }
  return groups;
}

distributed::ParameterParts FullyShardedModelState::parameter_parts() const {
  distributed::ParameterParts parts;
  for (const Unit& unit : units_) {
    for (std::size_t i = 0; i < unit.parts().size(); ++i)
      parts[unit.named().names[i]] = {
          .shape = unit.named().tensors[i].sizes().vec(), .range = unit.range(i), .values = unit.parts()[i]};
  }
  return parts;
}

void FullyShardedModelState::save(const fs::path& directory, const torch::optim::Optimizer* optimizer,
                                  const std::string& name) const {
  if (wholes_ > 0) take_over();
  pt::DictBuilder content;
  content.add("parameters", distributed::to_value(parameter_parts()));
  content.add("backward_passes", backward_passes_);
  if (group_.rank == 0) {
    pt::DictBuilder buffers;
    for (const auto& buffer : model_.named_buffers()) {
      if (buffer.value().defined()) buffers.add(buffer.key(), buffer.value().detach());
    }
    content.add("buffers", buffers.take());
  }
  if (optimizer != nullptr) {
    content.add("optimizer_parameters", distributed::to_value(names_by_group(*optimizer)));
    content.add("optimizer", pt::optimizer_state(*optimizer, {}, pt::Partial::taken));
  }
  pt::write_file(distributed::shard_file(directory, name, group_.rank, group_.world_size), content.take());
}

void FullyShardedModelState::load(const fs::path& directory, torch::optim::Optimizer* optimizer,
                                  const std::string& name) {
  if (wholes_ > 0) throw InvalidArgument("load_shards: the model is under whole(), which would undo it");
  const std::string held = "a model in parts";
  const torch::NoGradGuard no_gradients;
  const distributed::ParameterParts parts = parameter_parts();
  distributed::PartsReader reader(parts,
                                  optimizer == nullptr ? std::nullopt : std::optional(names_by_group(*optimizer)));
  std::optional<Shard> last;
  for (const fs::path& file : distributed::find_shards(directory, name, held)) {
    last = distributed::read_shard(file);
    reader.read(*last);
  }
  pt::Faults faults;
  reader.add_faults(faults);
  std::vector<std::pair<Tensor, Tensor>> buffers;
  for (const auto& buffer : model_.named_buffers()) {
    if (!buffer.value().defined()) continue;
    const Tensor* const saved = reader.buffer(buffer.key());
    if (saved == nullptr || saved->sizes() != buffer.value().sizes()) {
      faults.add("the buffer \"" + buffer.key() + "\" " + c10::str(buffer.value().sizes()) +
                 " of the model is missing in the files, or of another shape there");
    } else {
      buffers.emplace_back(buffer.value(), *saved);
    }
  }
  const std::string cannot = "cannot load " + held + ", \"" + name + "\", in " + directory.string();
  faults.throw_if_any(cannot);
  std::optional<pt::OptimizerUpdate> update;
  if (optimizer != nullptr)
    update = pt::prepare_optimizer_update(*optimizer, reader.optimizer_state(*last), faults, pt::Partial::taken);
  faults.throw_if_any(cannot);
  for (const auto& [parameter, part] : parts) Tensor(part.values).copy_(reader.values_of(parameter));
  for (auto& [buffer, saved] : buffers) buffer.copy_(saved);
  if (update) update->apply(*optimizer);
  backward_passes_ = reader.backward_passes();
}

// ---- Its making

void check(const torch::nn::Module& model, const ShardingPolicy& policy, const FullyShardOptions& options) {
  pt::Faults faults;
  if (!policy) faults.add("the policy is empty");
  if (options.most_collected < 1) faults.add("a most_collected of " + std::to_string(options.most_collected));
  const std::vector<Tensor> parameters = model.parameters();
  if (std::ranges::none_of(parameters, [](const Tensor& tensor) { return tensor.requires_grad(); }))
    faults.add("the model has no parameter that requires a gradient, so there is nothing to train");
  faults.throw_if_any("fully_shard");
}

// Returns a line for each unit, which must be equal on all ranks.
std::vector<std::string> described(const std::vector<NamedParameters>& units) {
  std::vector<std::string> lines;
  for (const NamedParameters& unit : units)
    lines.push_back("collected together: " + (unit.module.empty() ? "the rest" : unit.module) + ", from " +
                    unit.names.front() + " to " + unit.names.back());
  return lines;
}

// Workers keep what is freed (worker/worker.cc), which falls into pieces where other layers' parameters come all the
// time: half of what is saved was lost to that.
void return_freed_memory() {
#ifdef M_MMAP_THRESHOLD
  constexpr int least_bytes = 4 << 20;
  ::mallopt(M_MMAP_THRESHOLD, least_bytes);
#endif
}

}  // namespace

std::shared_ptr<detail::FullySharded> detail::make_fully_sharded(torch::nn::Module& model, const ShardingPolicy& policy,
                                                                 const FullyShardOptions& options) {
  check(model, policy, options);
  Group group = distributed::current_group();
  if (options.move_to_device) model.to(group.device);
  std::vector<NamedParameters> units = Partition(model, policy).take();
  if (group.process_group) {
    if (group.device.is_cpu()) return_freed_memory();
    distributed::check_equal_layouts(group, model, "fully_shard", described(units));
    std::vector<Tensor> state = model.parameters();
    for (const Tensor& buffer : model.buffers()) state.push_back(buffer);
    distributed::copy_from_rank_zero(group, distributed::values_of(state));
  }
  auto sharded = std::make_shared<FullyShardedModelState>(model, std::move(group), std::move(units), options);
  sharded->watch_gradients();
  return sharded;
}

WholeParameters::WholeParameters(std::shared_ptr<detail::FullySharded> model) : model_(std::move(model)) {
  model_->collect();
}

WholeParameters::~WholeParameters() { model_->drop(); }

}  // namespace cadre::train
