#include "torch/unpickler.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cadre/error.h"
#include "torch/pickle_opcode.h"

namespace cadre::pt {
namespace {

using Kind = Container::Kind;

constexpr int max_depth = 64;
constexpr std::size_t max_dimensions = 64;
constexpr std::size_t max_name_bytes = 1000;  // of types and storages, which messages quote
// Each further use of a memoized value costs the pickle two bytes, while a walk through the result visits the value
// again each time.
constexpr std::uint64_t free_weight = std::uint64_t{1} << 20;
constexpr std::uint64_t max_weight_of_a_byte = 64;

// Computes sum += a * b; returns false on overflow (`sum` is then undefined).
bool multiply_add(std::uint64_t a, std::uint64_t b, std::uint64_t& sum) {
  std::uint64_t product = 0;
  return !__builtin_mul_overflow(a, b, &product) && !__builtin_add_overflow(sum, product, &sum);
}

class Unpickler {
 public:
  Unpickler(std::string_view bytes, const std::string& file, const StorageLoader& load_storage)
      : bytes_(bytes),
        file_(file),
        load_storage_(load_storage),
        max_weight_(free_weight + max_weight_of_a_byte * bytes.size()) {}

  Value run() {
    for (;;) {
      operation_ = position_;
      const auto opcode = static_cast<Opcode>(read_number<std::uint8_t>());
      if (opcode == Opcode::stop) break;
      execute(opcode);
    }
    if (stack_.size() != 1 || !marks_.empty()) fail("the pickle ends with something left over");
    if (position_ != bytes_.size()) fail("there is more after the end of the pickle");
    return pop();
  }

 private:
  void execute(Opcode opcode) {
    if (execute_number(opcode) || execute_text(opcode) || execute_container(opcode) || execute_memo(opcode)) return;
    switch (opcode) {
      case Opcode::proto:
        if (read_number<std::uint8_t>() > 5) fail("a pickle of a newer protocol than 5");
        return;
      case Opcode::frame:
        take(8);
        return;
      case Opcode::bin_pers_id:
        return push(storage_of(pop()));
      case Opcode::reduce: {
        const Value arguments = pop();
        return push(call(pop(), arguments));
      }
      case Opcode::build:  // attributes of an object: a state_dict has only _metadata, which is unused
        pop();
        if (top().dict() == nullptr) fail("attributes are set on something that is no dictionary");
        return;
      default:
        fail("operation " + std::to_string(static_cast<int>(opcode)) + " does not belong in a file of tensors");
    }
  }

  bool execute_number(Opcode opcode) {
    switch (opcode) {
      case Opcode::none:
        push({});
        return true;
      case Opcode::new_true:
      case Opcode::new_false:
        push(opcode == Opcode::new_true);
        return true;
      case Opcode::bin_int:
        push(std::int64_t{read_number<std::int32_t>()});
        return true;
      case Opcode::bin_int1:
        push(std::int64_t{read_number<std::uint8_t>()});
        return true;
      case Opcode::bin_int2:
        push(std::int64_t{read_number<std::uint16_t>()});
        return true;
      case Opcode::long1:
        push(read_long());
        return true;
      case Opcode::bin_float:
        push(std::bit_cast<double>(__builtin_bswap64(read_number<std::uint64_t>())));
        return true;
      default:
        return false;
    }
  }

  bool execute_text(Opcode opcode) {
    switch (opcode) {
      case Opcode::short_bin_unicode:
        push(std::string(take(read_number<std::uint8_t>())));
        return true;
      case Opcode::bin_unicode:
        push(std::string(take(read_number<std::uint32_t>())));
        return true;
      case Opcode::bin_unicode8:
        push(std::string(take(read_number<std::uint64_t>())));
        return true;
      case Opcode::global: {
        const std::string module = read_line();
        push_global(module + "." + read_line());
        return true;
      }
      case Opcode::stack_global: {
        const Value name = pop();
        const Value module = pop();
        push_global(name_of(module) + "." + name_of(name));
        return true;
      }
      default:
        return false;
    }
  }

  bool execute_container(Opcode opcode) {
    switch (opcode) {
      case Opcode::mark:
        marks_.push_back(stack_.size());
        return true;
      case Opcode::empty_list:
        push(make_container(Kind::list));
        return true;
      case Opcode::empty_dict:
        push(make_container(Kind::dict));
        return true;
      case Opcode::empty_tuple:
        push_tuple({});
        return true;
      case Opcode::tuple:
        push_tuple(pop_to_mark());
        return true;
      case Opcode::tuple1:
      case Opcode::tuple2:
      case Opcode::tuple3:
        push_tuple(pop_many(static_cast<std::size_t>(opcode) - static_cast<std::size_t>(Opcode::tuple1) + 1));
        return true;
      case Opcode::append:
        extend_top(Kind::list, pop_many(1));
        return true;
      case Opcode::appends:
        extend_top(Kind::list, pop_to_mark());
        return true;
      case Opcode::set_item:
        extend_top(Kind::dict, pop_many(2));
        return true;
      case Opcode::set_items:
        extend_top(Kind::dict, pop_to_mark());
        return true;
      default:
        return false;
    }
  }

  bool execute_memo(Opcode opcode) {
    switch (opcode) {
      case Opcode::bin_put:
        memo_[read_number<std::uint8_t>()] = top();
        return true;
      case Opcode::long_bin_put:
        memo_[read_number<std::uint32_t>()] = top();
        return true;
      case Opcode::memoize: {
        const auto next = static_cast<std::uint32_t>(memo_.size());
        memo_[next] = top();
        return true;
      }
      case Opcode::bin_get:
        push(remembered(read_number<std::uint8_t>()));
        return true;
      case Opcode::long_bin_get:
        push(remembered(read_number<std::uint32_t>()));
        return true;
      default:
        return false;
    }
  }

  // ---- Operands.

  std::string_view take(std::uint64_t size) {
    if (size > bytes_.size() - position_) fail("the pickle is cut");
    const std::string_view taken = bytes_.substr(position_, size);
    position_ += size;
    return taken;
  }

  template <class T>
  T read_number() {
    T number;
    std::memcpy(&number, take(sizeof number).data(), sizeof number);
    return number;
  }

  std::string read_line() {
    const auto end = bytes_.find('\n', position_);
    if (end == std::string_view::npos) fail("the pickle is cut");
    if (end - position_ > max_name_bytes) fail("a Python name of more than 1000 bytes");
    std::string line(take(end - position_));
    take(1);
    return line;
  }

  // Reads an integer of up to 8 bytes, little-endian, in two's complement.
  std::int64_t read_long() {
    const std::size_t size = read_number<std::uint8_t>();
    if (size > 8) fail("an integer of more than 64 bits");
    if (size == 0) return 0;
    const std::string_view digits = take(size);
    const bool is_negative = (static_cast<unsigned char>(digits.back()) & 0x80U) != 0;
    std::uint64_t value = is_negative ? ~std::uint64_t{0} : 0;
    std::memcpy(&value, digits.data(), size);
    return static_cast<std::int64_t>(value);
  }

  // ---- The stack. Values below the last mark are not accessible until the mark is removed.

  void push(Value value) { stack_.push_back(std::move(value)); }

  void push_global(std::string name) {
    static const std::vector<std::string> known = {
        "collections.Counter",
        "collections.OrderedDict",
        "torch._utils._rebuild_tensor_v2",
        "torch._utils._rebuild_parameter",
        "torch.Size",
    };
    if (!storage_type(name) && std::find(known.begin(), known.end(), name) == known.end()) {
      fail("the Python name \"" + name + "\" is refused: only dictionaries, lists, numbers, text and tensors are read");
    }
    push(Global{std::move(name)});
  }

  void push_tuple(std::vector<Value> items) {
    check_depth(items);
    Value tuple = make_container(Kind::tuple);
    add_items(*tuple.tuple(), std::move(items));
    push(std::move(tuple));
  }

  std::size_t reachable() const { return stack_.size() - (marks_.empty() ? 0 : marks_.back()); }

  Value& top() {
    if (reachable() == 0) fail("an operation needs a value and there is none");
    return stack_.back();
  }

  Value pop() {
    Value value = std::move(top());
    stack_.pop_back();
    return value;
  }

  std::vector<Value> pop_many(std::size_t count) {
    if (reachable() < count) fail("an operation needs values and there are none");
    const auto begin = stack_.end() - static_cast<std::ptrdiff_t>(count);
    std::vector<Value> values(std::make_move_iterator(begin), std::make_move_iterator(stack_.end()));
    stack_.erase(begin, stack_.end());
    return values;
  }

  std::vector<Value> pop_to_mark() {
    if (marks_.empty()) fail("an operation needs a mark and there is none");
    std::vector<Value> values = pop_many(reachable());
    marks_.pop_back();
    return values;
  }

  const Value& remembered(std::uint32_t index) const {
    const auto found = memo_.find(index);
    if (found == memo_.end()) fail("nothing is remembered under " + std::to_string(index));
    return found->second;
  }

  // ---- Containers.

  void check_depth(const std::vector<Value>& items) const {
    for (const Value& item : items) {
      const Container* inner = item.any_container();
      if (inner != nullptr && inner->depth >= max_depth) fail("more than 64 levels of containers");
    }
  }

  void extend_top(Kind kind, std::vector<Value> items) {
    Container* const target = top().container(kind);
    if (target == nullptr)
      fail(kind == Kind::list ? "items are added to something that is no list"
                              : "entries are added to something that is no dictionary");
    if (kind == Kind::dict && items.size() % 2 != 0) fail("a key without a value");
    check_depth(items);
    for (const Value& item : items) {
      if (Container* inner = item.any_container()) inner->sealed = true;
    }
    // Checked before adding: a container that contains itself would never be freed.
    if (target->sealed) fail("a container changes after it became part of another one");
    add_items(*target, std::move(items));
  }

  void add_items(Container& target, std::vector<Value> items) const {
    for (Value& item : items) {
      if (Container* inner = item.any_container()) {
        inner->sealed = true;
        target.depth = std::max(target.depth, inner->depth + 1);
      }
      target.weight += item.weight();  // cannot overflow: each is at most the limit or the size of a text
      if (target.weight > max_weight_)
        fail("the pickle uses what it has remembered too often: there is no end of values");
      target.items.push_back(std::move(item));
    }
  }

  const std::vector<Value>& tuple_of(const Value& value, std::size_t smallest) const {
    const Container* const tuple = value.tuple();
    if (tuple == nullptr || tuple->items.size() < smallest) {
      fail("a tuple of at least " + std::to_string(smallest) + " values is expected, there is " + value.kind_name());
    }
    return tuple->items;
  }

  const std::string& text_of(const Value& value) const {
    const auto* text = value.get_if<std::string>();
    if (text == nullptr) fail(std::string("text is expected, there is ") + value.kind_name());
    return *text;
  }

  const std::string& name_of(const Value& value) const {
    const std::string& name = text_of(value);
    if (name.size() > max_name_bytes) fail("a name of more than 1000 bytes");
    return name;
  }

  std::uint64_t size_of(const Value& value) const {
    const auto* number = value.get_if<std::int64_t>();
    if (number == nullptr || *number < 0) fail("a size is expected that is an integer and not negative");
    return static_cast<std::uint64_t>(*number);
  }

  // ---- Tensors.

  // Loads the storage of a persistent id ("storage", type, key, location, number of elements).
  Value storage_of(const Value& id) {
    const auto& parts = tuple_of(id, 5);
    if (text_of(parts[0]) != "storage") fail("a reference to something else than a storage");
    const auto* name = parts[1].get_if<Global>();
    const auto type = name == nullptr ? std::nullopt : storage_type(name->name);
    if (!type) fail("a storage of unknown type");
    std::uint64_t size_bytes = 0;
    if (!multiply_add(size_of(parts[4]), c10::elementSize(*type), size_bytes)) fail("a storage of impossible size");
    TypedStorage typed{load_storage_(name_of(parts[2]), size_bytes), *type};
    // A pickle may refer to a storage in every third byte: check each storage once.
    if (typed.type == at::kBool &&
        checked_bools_.try_emplace(typed.storage.unsafeGetStorageImpl(), typed.storage).second)
      check_bools(typed.storage);
    return typed;
  }

  // Refuses bools other than 0 or 1: reading them is undefined behaviour.
  void check_bools(const c10::Storage& storage) const {
    const auto* bytes = static_cast<const std::uint8_t*>(storage.data());
    if (std::any_of(bytes, bytes + storage.nbytes(), [](std::uint8_t byte) { return byte > 1; })) {
      fail("a storage of bools with other bytes than 0 and 1");
    }
  }

  Value call(const Value& function, const Value& arguments) const {
    const auto* global = function.get_if<Global>();
    const std::string name = global == nullptr ? function.kind_name() : global->name;
    if (name == "collections.OrderedDict") {
      if (!tuple_of(arguments, 0).empty()) fail("an OrderedDict that is made from a list");
      return make_container(Kind::dict);
    }
    if (name == "collections.Counter") {  // of numbers by what was counted
      const Value counts = tuple_of(arguments, 1)[0];
      if (counts.dict() == nullptr) fail(std::string("a Counter that is made from ") + counts.kind_name());
      return counts;
    }
    if (name == "torch._utils._rebuild_tensor_v2") return tensor_of(tuple_of(arguments, 4));
    if (name == "torch._utils._rebuild_parameter") return tuple_of(arguments, 1)[0];
    if (name == "torch.Size") return tuple_of(arguments, 1)[0];
    fail("a call of " + name);
  }

  // Builds a tensor from (storage, offset, size, stride, …); offset and strides are in elements.
  torch::Tensor tensor_of(const std::vector<Value>& arguments) const {
    const auto* typed = arguments[0].get_if<TypedStorage>();
    if (typed == nullptr) fail(std::string("a tensor of ") + arguments[0].kind_name() + " instead of a storage");
    const std::uint64_t offset = size_of(arguments[1]);
    const std::vector<std::int64_t> sizes = sizes_of(arguments[2]);
    const std::vector<std::int64_t> strides = sizes_of(arguments[3]);
    if (sizes.size() != strides.size()) fail("a tensor with as many strides as sizes is expected");
    const std::uint64_t available = typed->storage.nbytes() / c10::elementSize(typed->type);
    if (elements_needed(offset, sizes, strides) > available) {
      fail("a tensor of " + std::string(c10::str(sizes)) + " reaches beyond its storage of " +
           std::to_string(available) + " elements");
    }
    return torch::empty({0}, typed->type).set_(typed->storage, static_cast<std::int64_t>(offset), sizes, strides);
  }

  std::vector<std::int64_t> sizes_of(const Value& value) const {
    const auto& items = tuple_of(value, 0);
    if (items.size() > max_dimensions) fail("a tensor of more than 64 dimensions");
    std::vector<std::int64_t> sizes;
    for (const Value& item : items) sizes.push_back(static_cast<std::int64_t>(size_of(item)));
    return sizes;
  }

  // Returns the index of the last element in the storage plus one; the offset for an empty tensor.
  std::uint64_t elements_needed(std::uint64_t offset, const std::vector<std::int64_t>& sizes,
                                const std::vector<std::int64_t>& strides) const {
    std::uint64_t last = offset;
    std::uint64_t count = 1;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto size = static_cast<std::uint64_t>(sizes[i]);
      std::uint64_t product = 0;
      if (!multiply_add(count, size, product) || product > std::uint64_t{1} << 62) fail("a tensor of impossible size");
      count = product;
      if (size > 1 && !multiply_add(size - 1, static_cast<std::uint64_t>(strides[i]), last))
        fail("a tensor of impossible strides");
    }
    if (count == 0) return offset;
    if (last == std::numeric_limits<std::uint64_t>::max()) fail("a tensor of impossible strides");
    return last + 1;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw StorageError("cannot load " + file_ + ", data.pkl offset " + std::to_string(operation_) + ": " + what);
  }

  std::string_view bytes_;
  const std::string& file_;
  const StorageLoader& load_storage_;
  std::uint64_t max_weight_;
  std::size_t position_ = 0;
  std::size_t operation_ = 0;  // start of the current operation
  std::vector<Value> stack_;
  std::vector<std::size_t> marks_;  // stack sizes at the marks
  std::unordered_map<std::uint32_t, Value> memo_;
  std::unordered_map<const c10::StorageImpl*, c10::Storage> checked_bools_;  // kept alive: no address is reused
};

}  // namespace

Value unpickle(std::string_view bytes, const std::string& file, const StorageLoader& load_storage) {
  return Unpickler(bytes, file, load_storage).run();
}

}  // namespace cadre::pt
