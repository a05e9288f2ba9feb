#include "cadre/train_torch/data_loader.h"

#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

#include "cadre/error.h"
#include "torch/distributed/group.h"
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

DistributedSampler make_sampler(std::optional<std::size_t> size, const DataLoaderOptions& options) {
  const auto world_size = static_cast<std::size_t>(distributed::current_group().world_size);
  pt::Faults faults;
  if (options.batch_size < 1) faults.add("a batch_size of " + std::to_string(options.batch_size));
  if (options.prefetch < 0) faults.add("a prefetch of " + std::to_string(options.prefetch));
  if (!size) {
    faults.add("the dataset has no size: it is a stream, which cannot be shared by index");
  } else if (*size < world_size) {
    faults.add("a dataset of " + std::to_string(*size) + " examples for " + std::to_string(world_size) + " ranks");
  }
  faults.throw_if_any("prepare_data_loader");
  DistributedSampler sampler(*size, {.shuffle = options.shuffle, .seed = options.seed, .remainder = options.remainder});
  if (count_batches(sampler.share(), options) == 0) {
    throw InvalidArgument("prepare_data_loader: drop_last leaves nothing of a share of " +
                          std::to_string(sampler.share()) + " examples with a batch_size of " +
                          std::to_string(options.batch_size));
  }
  return sampler;
}

std::int64_t count_batches(std::size_t share, const DataLoaderOptions& options) {
  const auto examples = static_cast<std::int64_t>(share);
  return examples / options.batch_size + (!options.drop_last && examples % options.batch_size != 0 ? 1 : 0);
}

struct Prefetcher::State {
  std::function<Item()> make;
  std::size_t ahead = 0;

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Item> ready;  // a null pointer marks the end
  std::exception_ptr error;
  bool stop = false;
  std::thread thread;

  // Waits for room for another item; returns false if the thread must stop.
  bool wait_for_room() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return stop || ready.size() < ahead; });
    return !stop;
  }

  void add(Item item, std::exception_ptr what) {
    {
      const std::lock_guard lock(mutex);
      ready.push_back(std::move(item));
      error = std::move(what);
    }
    changed.notify_all();
  }

  void run() {
    while (wait_for_room()) {
      Item item;
      std::exception_ptr what;
      try {
        item = make();
      } catch (...) {
        what = std::current_exception();
      }
      const bool was_last = item == nullptr;
      add(std::move(item), what);
      if (was_last) return;
    }
  }
};

Prefetcher::Prefetcher(std::function<Item()> make, std::int64_t ahead) : state_(std::make_unique<State>()) {
  state_->make = std::move(make);
  state_->ahead = static_cast<std::size_t>(ahead);
  if (ahead > 0) state_->thread = std::thread([state = state_.get()] { state->run(); });
}

Prefetcher::~Prefetcher() {
  if (!state_->thread.joinable()) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->changed.notify_all();
  state_->thread.join();
}

Prefetcher::Item Prefetcher::next() {
  if (state_->ahead == 0) return state_->make();
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [&] { return !state_->ready.empty(); });
  if (state_->ready.front() == nullptr) {  // the end marker stays in the queue
    if (state_->error) std::rethrow_exception(state_->error);
    return nullptr;
  }
  Item item = std::move(state_->ready.front());
  state_->ready.pop_front();
  lock.unlock();
  state_->changed.notify_all();
  return item;
}

// Copies run on a separate stream, parallel to the computation, from pinned memory.
DeviceTransfer::DeviceTransfer(std::optional<torch::Device> device) : device_(device) {
  if (!device_ || !device_->is_cuda()) return;
  stream_ = c10::impl::VirtualGuardImpl(device_->type()).getStreamFromGlobalPool(*device_);
}

std::shared_ptr<void> DeviceTransfer::send(std::span<torch::Tensor* const> tensors) const {
  if (!device_) return nullptr;
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
