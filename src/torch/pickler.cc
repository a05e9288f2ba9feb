#include "torch/pickler.h"

#include <bit>
#include <limits>
#include <map>
#include <memory>
#include <utility>
#include <variant>

#include "cadre/error.h"
#include "torch/pickle_opcode.h"

namespace cadre::pt {
namespace {

class Pickler {
 public:
  Pickled run(const Value& value) {
    op(Opcode::proto);
    byte(2);  // as torch.save writes
    push(value);
    op(Opcode::stop);
    return std::move(result_);
  }

 private:
  void push(const Value& value) {
    std::visit([this](const auto& data) { push_data(data); }, value.data());
  }

  void push_data(std::monostate) { op(Opcode::none); }
  void push_data(bool value) { op(value ? Opcode::new_true : Opcode::new_false); }
  void push_data(std::int64_t value) {
    if (value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max()) {
      op(Opcode::bin_int);
      little_endian(static_cast<std::uint32_t>(value));
    } else {
      op(Opcode::long1);
      byte(8);
      little_endian(static_cast<std::uint64_t>(value));
    }
  }
  void push_data(double value) {
    op(Opcode::bin_float);
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 56; shift >= 0; shift -= 8) byte(static_cast<std::uint8_t>(bits >> shift));
  }
  void push_data(const Value::Text& text) { push_data(*text); }
  void push_data(const std::string& text) {
    op(Opcode::bin_unicode);
    little_endian(static_cast<std::uint32_t>(text.size()));
    result_.bytes += text;
  }
  void push_data(const Global& global) {
    const auto dot = global.name.rfind('.');
    op(Opcode::global);
    result_.bytes += global.name.substr(0, dot) + "\n" + global.name.substr(dot + 1) + "\n";
  }
  void push_data(const TypedStorage&) { throw InvalidArgument("a storage without a tensor cannot be saved"); }

  void push_data(const std::shared_ptr<Container>& container) {
    switch (container->kind) {
      case Container::Kind::tuple:
        return push_tuple(container->items);
      case Container::Kind::list:
        op(Opcode::empty_list);
        return push_items(container->items, Opcode::appends);
      case Container::Kind::dict:
        op(Opcode::empty_dict);
        return push_items(container->items, Opcode::set_items);
    }
  }

  void push_items(const std::vector<Value>& items, Opcode end) {
    if (items.empty()) return;
    op(Opcode::mark);
    for (const Value& item : items) push(item);
    op(end);
  }

  void push_tuple(const std::vector<Value>& items) {
    op(Opcode::mark);
    for (const Value& item : items) push(item);
    op(Opcode::tuple);
  }

  void push_sizes(at::IntArrayRef sizes) { push_tuple({sizes.begin(), sizes.end()}); }

  // Pushes _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks).
  void push_data(const torch::Tensor& original) {
    const torch::Tensor tensor = on_cpu(original);
    push_data(Global{"torch._utils._rebuild_tensor_v2"});
    op(Opcode::mark);
    push_storage(tensor);
    push_data(tensor.storage_offset());
    push_sizes(tensor.sizes());
    push_sizes(tensor.strides());
    op(Opcode::new_false);
    push_data(Global{"collections.OrderedDict"});
    op(Opcode::empty_tuple);
    op(Opcode::reduce);
    op(Opcode::tuple);
    op(Opcode::reduce);
  }

  // Pushes the persistent id ("storage", type, key, location, number of elements).
  void push_storage(const torch::Tensor& tensor) {
    const char* const name = storage_name(tensor.scalar_type());
    if (name == nullptr) {
      throw InvalidArgument(std::string("a tensor of type ") + at::toString(tensor.scalar_type()) + " cannot be saved");
    }
    const c10::Storage& storage = tensor.storage();
    const auto [found, is_new] = stored_.try_emplace(storage.unsafeGetStorageImpl(),
                                                     Stored{std::to_string(stored_.size()), tensor.scalar_type()});
    if (is_new) result_.storages.push_back(storage);
    // A reader makes one storage of a key, of the type that it meets first.
    if (found->second.type != tensor.scalar_type()) {
      throw InvalidArgument(std::string("tensors of the types ") + at::toString(found->second.type) + " and " +
                            at::toString(tensor.scalar_type()) +
                            " that share their memory cannot be saved together; clone one of them");
    }
    op(Opcode::mark);
    push_data(std::string("storage"));
    push_data(Global{name});
    push_data(found->second.key);
    push_data(std::string("cpu"));
    push_data(static_cast<std::int64_t>(storage.nbytes() / tensor.element_size()));
    op(Opcode::tuple);
    op(Opcode::bin_pers_id);
  }

  // Copies tensors of other devices: they no longer share memory in the file.
  static torch::Tensor on_cpu(const torch::Tensor& tensor) {
    if (!tensor.defined()) throw InvalidArgument("an undefined tensor cannot be saved");
    if (tensor.layout() != at::kStrided || tensor.is_quantized()) {
      throw InvalidArgument("a sparse or quantized tensor cannot be saved");
    }
    const torch::Tensor plain = tensor.detach().resolve_conj().resolve_neg();
    return plain.device().is_cpu() ? plain : plain.cpu();
  }

  void op(Opcode opcode) { byte(static_cast<std::uint8_t>(opcode)); }
  void byte(std::uint8_t value) { result_.bytes.push_back(static_cast<char>(value)); }
  template <class T>
  void little_endian(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) byte(static_cast<std::uint8_t>(value >> (8 * i)));
  }

  struct Stored {
    std::string key;
    torch::ScalarType type;
  };

  Pickled result_;
  std::map<const c10::StorageImpl*, Stored> stored_;
};

}  // namespace

Pickled pickle(const Value& value) { return Pickler().run(value); }

}  // namespace cadre::pt
