#include "torch/distributed/watched_memory.h"

// torch.h comes first: this header needs its macros.
#include <torch/library.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "cadre/error.h"

namespace cadre::distributed {
namespace {

constexpr c10::DispatchKey kWatchedKey = c10::DispatchKey::TESTING_ONLY_GenericWrapper;

class Registry {
 public:
  void add(const c10::StorageImpl* storage, WatchedMemory* memory) {
    const std::lock_guard lock(mutex_);
    memories_[storage] = memory;
  }
  void remove(const c10::StorageImpl* storage) {
    const std::lock_guard lock(mutex_);
    memories_.erase(storage);
  }
  WatchedMemory* find(const c10::StorageImpl* storage) const {
    const std::lock_guard lock(mutex_);
    const auto found = memories_.find(storage);
    return found == memories_.end() ? nullptr : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<const c10::StorageImpl*, WatchedMemory*> memories_;
};

Registry& registry() {
  static Registry* const registry = new Registry;  // tensors may be used by destructors of statics
  return *registry;
}

using Used = std::map<WatchedMemory::Owner*, std::vector<WatchedMemory*>>;

void add_memory_of(const at::Tensor& tensor, Used& used) {
  if (!tensor.defined() || !tensor.key_set().has(kWatchedKey)) return;
  const c10::StorageImpl* const storage = tensor.storage().unsafeGetStorageImpl();
  WatchedMemory* const memory = registry().find(storage);
  if (memory == nullptr) {
    if (storage->nbytes() > 0 || tensor.numel() == 0) return;
    throw InvalidArgument("a parameter of a model that was divided among ranks is used, and the model is gone");
  }
  std::vector<WatchedMemory*>& all = used[&memory->owner()];
  if (std::ranges::find(all, memory) == all.end()) all.push_back(memory);
}

// Is called in place of each operation that has such a tensor among its arguments.
void run_with_memory(const c10::OperatorHandle& operation, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  Used used;
  for (const c10::IValue& argument : torch::jit::last(*stack, operation.schema().arguments().size())) {
    if (argument.isTensor()) {
      add_memory_of(argument.toTensor(), used);
    } else if (argument.isTensorList()) {
      for (const at::Tensor& tensor : argument.toTensorVector()) add_memory_of(tensor, used);
    } else if (argument.isOptionalTensorList()) {
      for (const std::optional<at::Tensor>& tensor : argument.toOptionalTensorVector())
        if (tensor) add_memory_of(*tensor, used);
    }
  }
  const c10::impl::ExcludeDispatchKeyGuard without_key(kWatchedKey);
  for (const auto& [owner, memories] : used) owner->before_use(memories);
  operation.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kWatchedKey), stack);
}

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericWrapper, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_with_memory>());
}

c10::StorageImpl& storage_of(const torch::Tensor& tensor) { return *tensor.storage().unsafeGetStorageImpl(); }

}  // namespace

WatchedMemory::WatchedMemory(Owner& owner, torch::Tensor flat)
    : owner_(owner), flat_(std::move(flat)), bytes_(storage_of(flat_).nbytes()) {
  registry().add(&storage_of(flat_), this);
}

WatchedMemory::~WatchedMemory() { registry().remove(&storage_of(flat_)); }

void WatchedMemory::allocate() {
  if (is_there_) return;
  c10::StorageImpl& storage = storage_of(flat_);
  const c10::OptionalDeviceGuard device(flat_.device());
  storage.set_data_ptr_noswap(storage.allocator()->allocate(bytes_));
  storage.set_nbytes(bytes_);
  is_there_ = true;
}

void WatchedMemory::free() {
  if (!is_there_) return;
  c10::StorageImpl& storage = storage_of(flat_);
  storage.set_data_ptr_noswap(at::DataPtr(nullptr, flat_.device()));
  storage.set_nbytes(0);
  is_there_ = false;
}

void WatchedMemory::place(torch::Tensor& tensor, std::int64_t begin) const {
  auto elements = c10::make_intrusive<c10::TensorImpl>(
      c10::Storage(flat_.storage()), flat_.key_set() | c10::DispatchKeySet(kWatchedKey), flat_.dtype());
  elements->set_storage_offset(begin);
  elements->set_sizes_contiguous(tensor.sizes());
  const c10::impl::ExcludeDispatchKeyGuard without_key(kWatchedKey);  // set_data is an operation, too
  tensor.set_data(at::Tensor(std::move(elements)));
}

}  // namespace cadre::distributed
