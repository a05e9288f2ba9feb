#include "cadre/train_torch/data_loader.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "base/library_threads.h"
#include "cadre/error.h"
#include "torch/distributed/group.h"
#include "torch/distributed/shares.h"
#include "torch/faults.h"

namespace cadre::train {
namespace {

// Returns the indices as a tensor that shares their memory.
torch::Tensor as_tensor(torch::ArrayRef<std::size_t> indices) {
  static_assert(sizeof(std::size_t) == sizeof(std::int64_t));
  return torch::from_blob(const_cast<std::size_t*>(indices.data()), static_cast<std::int64_t>(indices.size()),
                          torch::kLong);
}

torch::Tensor rows(const torch::Tensor& tensor, const torch::Tensor& indices) {
  return tensor.index_select(0, indices.to(tensor.device()));
}

}  // namespace

TensorDataset::TensorDataset(torch::Tensor data, torch::Tensor target)
    : data_(std::move(data)), target_(std::move(target)) {
  for (const torch::Tensor& tensor : {data_, target_}) {
    if (!tensor.defined() || tensor.dim() == 0) {
      throw InvalidArgument("TensorDataset: a tensor without rows is no data of examples");
    }
  }
  if (data_.size(0) != target_.size(0)) {
    throw InvalidArgument("TensorDataset: the data have " + std::to_string(data_.size(0)) +
                          " rows, and the targets have " + std::to_string(target_.size(0)));
  }
}

torch::data::Example<> TensorDataset::get_batch(torch::ArrayRef<std::size_t> indices) {
  const torch::Tensor index = as_tensor(indices);
  return {rows(data_, index), rows(target_, index)};
}

std::optional<std::size_t> TensorDataset::size() const { return static_cast<std::size_t>(data_.size(0)); }

namespace detail {

namespace {

constexpr const char* kWhat = "prepare_data_loader";

// Cuts a rank's examples into batches.
BatchPlan cut(std::vector<std::size_t> indices, std::size_t batch_size, bool drop_last) {
  BatchPlan plan;
  for (std::size_t end = batch_size; end <= indices.size(); end += batch_size) plan.ends.push_back(end);
  if (const std::size_t rest = indices.size() % batch_size; rest != 0 && !drop_last)
    plan.ends.push_back(indices.size());
  plan.indices = std::move(indices);
  return plan;
}

BatchPlan join(const std::vector<std::vector<std::size_t>>& batches) {
  BatchPlan plan;
  for (const std::vector<std::size_t>& batch : batches) {
    plan.indices.insert(plan.indices.end(), batch.begin(), batch.end());
    plan.ends.push_back(plan.indices.size());
  }
  return plan;
}

std::string epoch_text(std::uint64_t epoch) { return " in epoch " + std::to_string(epoch); }

// Returns a whole number of a state, 0 or more.
std::uint64_t number_in(const Dict& state, const char* name) {
  const Value* const value = find_entry(state, name);
  if (value == nullptr || !value->is_integer() || value->get<std::int64_t>() < 0) {
    throw InvalidArgument("this is no state of such a data loader: a whole number \"" + std::string(name) +
                          "\" is expected, 0 or more");
  }
  return value->get<std::uint64_t>();
}

void add_faults(const DataLoaderOptions& options, pt::Faults& faults) {
  if (options.batch_size < 1) faults.add("a batch_size of " + std::to_string(options.batch_size));
  if (options.prefetch < 0) faults.add("a prefetch of " + std::to_string(options.prefetch));
  if (options.num_workers < 0) faults.add("num_workers of " + std::to_string(options.num_workers));
  if (options.sampler && options.shuffle) faults.add("a sampler, and shuffle: it says the order itself");
  if (!options.batch_sampler) return;
  if (options.sampler || options.shuffle || options.drop_last || options.batch_size != 1)
    faults.add("a batch_sampler, and batch_size, shuffle, sampler or drop_last: it says the batches itself");
}

}  // namespace

BatchOrder::BatchOrder(std::optional<std::size_t> size, const DataLoaderOptions& options)
    : size_(size.value_or(0)), options_(options) {
  const distributed::Group group = distributed::current_group();
  world_size_ = static_cast<std::size_t>(group.world_size);
  rank_ = static_cast<std::size_t>(group.rank);
  pt::Faults faults;
  add_faults(options, faults);
  if (!size) {
    faults.add("the dataset has no size: it is a stream, which cannot be shared by index");
  } else if (size_ == 0 || (size_ < world_size_ && !options.sampler && !options.batch_sampler)) {
    faults.add("a dataset of " + std::to_string(size_) + " examples for " + std::to_string(world_size_) + " ranks");
  }
  faults.throw_if_any(kWhat);
  if (options.sampler || options.batch_sampler || count(0) > 0) return;
  throw InvalidArgument(std::string(kWhat) + ": drop_last leaves nothing of a share of " +
                        std::to_string(distributed::share_of(size_, world_size_, rank_, options_.remainder)) +
                        " examples with a batch_size of " + std::to_string(options.batch_size));
}

BatchPlan BatchOrder::plan(std::uint64_t epoch, std::size_t position) const {
  const auto refuse = [&](const std::string& why) {
    throw InvalidArgument(std::string(kWhat) + ": the " + (options_.batch_sampler ? "batch_sampler" : "sampler") +
                          " has " + why + epoch_text(epoch));
  };
  const auto own = [&]<class T>(const std::vector<T>& order) {
    if (order.empty()) refuse("nothing");
    const std::size_t begin = std::min(position, order.size());
    return distributed::share_of(std::span(order), begin, world_size_, rank_, options_.remainder);
  };
  BatchPlan plan;
  if (options_.batch_sampler) {
    const auto batches = own(options_.batch_sampler(epoch));
    if (std::ranges::any_of(batches, [](const auto& batch) { return batch.empty(); })) refuse("an empty batch");
    plan = join(batches);
  } else {
    const std::vector<std::size_t> order = options_.sampler   ? options_.sampler(epoch)
                                           : options_.shuffle ? distributed::permutation(size_, options_.seed + epoch)
                                                              : distributed::in_order(size_);
    plan = cut(own(order), static_cast<std::size_t>(options_.batch_size), options_.drop_last);
  }
  for (const std::size_t index : plan.indices) {
    if (index >= size_) refuse("example " + std::to_string(index) + " of a dataset of " + std::to_string(size_));
  }
  return plan;
}

std::size_t BatchOrder::units(std::uint64_t epoch) const {
  if (options_.batch_sampler) return options_.batch_sampler(epoch).size();
  return options_.sampler ? options_.sampler(epoch).size() : size_;
}

std::int64_t BatchOrder::count(std::uint64_t epoch) const {
  const std::size_t share = distributed::share_of(units(epoch), world_size_, rank_, options_.remainder);
  if (options_.batch_sampler) return static_cast<std::int64_t>(share);
  const auto examples = static_cast<std::int64_t>(share);
  return examples / options_.batch_size + (!options_.drop_last && examples % options_.batch_size != 0 ? 1 : 0);
}

std::size_t BatchOrder::advance(std::size_t position, std::size_t batches) const {
  const std::size_t each = options_.batch_sampler ? 1 : static_cast<std::size_t>(options_.batch_size);
  return position + batches * each * world_size_;
}

Dict BatchOrder::to_state(std::uint64_t epoch, std::size_t position) const {
  return {{"epoch", epoch}, {options_.batch_sampler ? "batches" : "examples", position}};
}

std::pair<std::uint64_t, std::size_t> BatchOrder::from_state(const Dict& state) const {
  const std::uint64_t epoch = number_in(state, "epoch");
  const char* const unit = options_.batch_sampler ? "batches" : "examples";
  const auto position = static_cast<std::size_t>(number_in(state, unit));
  const std::size_t all = units(epoch);
  // The last batches of all ranks together may go beyond the end.
  if (position >= advance(all, 1)) {
    throw InvalidArgument("the state of a data loader is of another dataset: " + std::to_string(position) + " " + unit +
                          epoch_text(epoch) + ", which has " + std::to_string(all));
  }
  return {epoch, position};
}

struct BatchWorkers::State {
  struct Slot {
    bool is_ready = false;
    Item item = {};
    std::exception_ptr error = {};
  };

  Make make = {};
  bool has_one_thread = false;

  std::mutex mutex = {};
  std::condition_variable changed = {};
  std::vector<Slot> slots = {};  // batch n is in slot n modulo their number
  std::size_t next_to_make = 0;
  std::size_t given_out = 0;
  bool is_over = false;  // there are no batches after those that were begun
  bool stop = false;
  std::vector<std::thread> threads = {};

  // Waits for room for another batch, and returns its number; empty if the thread must end.
  std::optional<std::size_t> begin_one() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stop || is_over || next_to_make < given_out + slots.size(); });
    if (stop || is_over) return std::nullopt;
    return next_to_make++;
  }

  void run(std::size_t worker) {
    if (!has_one_thread) use_one_cpu();
    while (const auto number = begin_one()) {
      Slot made{.is_ready = true};
      try {
        made.item = make(worker, *number);
      } catch (...) {
        made.error = std::current_exception();
      }
      {
        const std::lock_guard lock(mutex);
        if (made.item == nullptr) is_over = true;
        slots[*number % slots.size()] = std::move(made);
      }
      changed.notify_all();
    }
  }

  void end() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    changed.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  // Lets the calling thread compute alone: there is a worker for each CPU. libtorch sets its number at first.
  static void use_one_cpu() {
    at::get_num_threads();
    base::set_openmp_threads(1);
  }
};

BatchWorkers::BatchWorkers(Make make, std::size_t workers, std::size_t ahead) : state_(std::make_unique<State>()) {
  state_->make = std::move(make);
  state_->has_one_thread = workers == 1;
  state_->slots.resize(workers * ahead);
  try {
    for (std::size_t worker = 0; worker < workers; ++worker)
      state_->threads.emplace_back([state = state_.get(), worker] { state->run(worker); });
  } catch (...) {  // the system has no threads any more
    state_->end();
    throw;
  }
}

BatchWorkers::~BatchWorkers() { state_->end(); }

BatchWorkers::Item BatchWorkers::next() {
  const std::size_t number = state_->given_out;
  if (state_->threads.empty()) {
    ++state_->given_out;
    return state_->make(0, number);
  }
  std::unique_lock lock(state_->mutex);
  State::Slot& slot = state_->slots[number % state_->slots.size()];
  state_->changed.wait(lock, [&] { return slot.is_ready; });
  if (slot.error) std::rethrow_exception(slot.error);
  if (slot.item == nullptr) return nullptr;  // the end stays there
  Item item = std::move(slot.item);
  slot = {};
  ++state_->given_out;
  lock.unlock();
  state_->changed.notify_all();
  return item;
}

// Copies run on a separate stream, parallel to the computation, from pinned memory.
DeviceTransfer::DeviceTransfer(const DataLoaderOptions& options)
    : device_(options.move_to_device ? std::optional(get_device()) : std::nullopt),
      pin_memory_(options.pin_memory && torch::cuda::is_available()) {
  if (!device_ || !device_->is_cuda()) return;
  stream_ = c10::impl::VirtualGuardImpl(device_->type()).getStreamFromGlobalPool(*device_);
}

std::shared_ptr<void> DeviceTransfer::send(std::span<torch::Tensor* const> tensors) const {
  if (!device_) {
    if (!pin_memory_) return nullptr;
    for (torch::Tensor* tensor : tensors) {
      if (tensor->is_cpu()) *tensor = tensor->pin_memory();
    }
    return nullptr;
  }
  if (!stream_) {
    for (torch::Tensor* tensor : tensors) *tensor = tensor->to(*device_);
    return nullptr;
  }
  const c10::StreamGuard on_stream(*stream_);
  for (torch::Tensor* tensor : tensors) {
    const torch::Tensor from = tensor->is_cpu() ? tensor->pin_memory() : *tensor;
    *tensor = from.to(*device_, /*non_blocking=*/true);
  }
  auto copied = std::make_shared<c10::Event>(device_->type());
  copied->record(*stream_);
  return copied;
}

void DeviceTransfer::receive(const std::shared_ptr<void>& sent, std::span<torch::Tensor* const> tensors) const {
  if (sent == nullptr) return;
  const c10::Stream computing = c10::impl::VirtualGuardImpl(device_->type()).getStream(*device_);
  static_cast<c10::Event*>(sent.get())->block(computing);
  for (torch::Tensor* tensor : tensors) tensor->record_stream(computing);
}

}  // namespace detail
}  // namespace cadre::train
