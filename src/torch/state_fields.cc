#include "torch/state_fields.h"

#include <set>
#include <string_view>

#include "cadre/faults.h"

namespace cadre::optim::detail {
namespace {

class Writer final : public StateFields {
 public:
  void field(const char* name, bool& value) override { state.emplace_back(name, value); }
  void field(const char* name, std::int64_t& value) override { state.emplace_back(name, value); }
  void field(const char* name, double& value) override { state.emplace_back(name, value); }
  void field(const char* name, std::string& value) override { state.emplace_back(name, value); }
  void field(const char* name, std::vector<double>& value) override { add_list(name, value); }
  void field(const char* name, std::vector<std::int64_t>& value) override { add_list(name, value); }
  void field(const char* name, Value& value) override { state.emplace_back(name, value); }
  void field(const char* name, const std::vector<WithState*>& parts) override {
    List states;
    for (WithState* const part : parts) states.emplace_back(write_state(*part));
    state.emplace_back(name, std::move(states));
  }

  Dict state = {};

 private:
  template <class T>
  void add_list(const char* name, const std::vector<T>& values) {
    List list;
    for (const T& value : values) list.emplace_back(value);
    state.emplace_back(name, std::move(list));
  }
};

bool read(const Value& from, bool& value) {
  if (!from.is_bool()) return false;
  value = from.get<bool>();
  return true;
}
bool read(const Value& from, std::int64_t& value) {
  if (!from.is_integer()) return false;
  value = from.get<std::int64_t>();
  return true;
}
bool read(const Value& from, double& value) {
  if (!from.is_number()) return false;
  value = from.get<double>();
  return true;
}
bool read(const Value& from, std::string& value) {
  if (!from.is_string()) return false;
  value = from.get<std::string>();
  return true;
}
template <class T>
bool read(const Value& from, std::vector<T>& values) {
  if (!from.is_list()) return false;
  // Rates are those of groups of parameters.
  if (std::same_as<T, double> && !values.empty() && from.items().size() != values.size()) return false;
  std::vector<T> found;
  for (const Value& item : from.items()) {
    if (!read(item, found.emplace_back())) return false;
  }
  values = std::move(found);
  return true;
}

template <class T>
std::string expected(const T& value) {
  if constexpr (std::same_as<T, bool>) return "true or false";
  if constexpr (std::same_as<T, std::int64_t>) return "an integer";
  if constexpr (std::same_as<T, double>) return "a number";
  if constexpr (std::same_as<T, std::string>) return "text";
  if constexpr (requires { value.size(); } && !std::same_as<T, std::string>)
    return value.empty() ? "a list of numbers" : c10::str("a list of ", value.size(), " numbers");
  return "";
}

class Reader final : public StateFields {
 public:
  Reader(const Dict& state, Faults& faults) : state_(state), faults_(faults) {}

  void field(const char* name, bool& value) override { read_field(name, value); }
  void field(const char* name, std::int64_t& value) override { read_field(name, value); }
  void field(const char* name, double& value) override { read_field(name, value); }
  void field(const char* name, std::string& value) override { read_field(name, value); }
  void field(const char* name, std::vector<double>& value) override { read_field(name, value); }
  void field(const char* name, std::vector<std::int64_t>& value) override { read_field(name, value); }
  void field(const char* name, Value& value) override {
    if (const Value* const found = find(name)) value = *found;
  }
  void field(const char* name, const std::vector<WithState*>& parts) override {
    const Value* const found = find(name);
    if (found == nullptr) return faults_.add(name, "it is missing");
    if (!found->is_list() || found->items().size() != parts.size())
      return faults_.add(name, c10::str("it is ", to_json(*found), ", expected a list of ", parts.size(), " states"));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (!found->items()[i].is_dict()) {
        faults_.add(c10::str(name, "[", i, "]"), "it is no dictionary");
        continue;
      }
      Faults of_part;
      Reader part(found->items()[i].dict(), of_part);
      parts[i]->visit(part);
      part.refuse_others();
      faults_.add_all(c10::str(name, "[", i, "]"), of_part);
    }
  }

  void refuse_others() {
    // Python has these beside: one follows from the optimizer, older versions had the other.
    known_.insert({"use_beta1", "verbose"});
    for (const auto& [name, value] : state_) {
      if (!known_.contains(name) && !name.starts_with("_"))
        faults_.add(name, "nothing here has that name; is it the state of another schedule?");
    }
  }

 private:
  const Value* find(const char* name) {
    known_.insert(name);
    return find_entry(state_, name);
  }

  template <class T>
  void read_field(const char* name, T& value) {
    const Value* const found = find(name);
    if (found == nullptr) {
      if (!std::string_view(name).starts_with("_")) faults_.add(name, "it is missing");
    } else if (!read(*found, value)) {
      faults_.add(name, c10::str("it is ", to_json(*found), ", expected ", expected(value)));
    }
  }

  const Dict& state_;
  Faults& faults_;
  std::set<std::string, std::less<>> known_ = {};
};

}  // namespace

Dict write_state(WithState& object) {
  Writer writer;
  object.visit(writer);
  return std::move(writer.state);
}

void read_state(const Dict& state, const std::string& what, WithState& object) {
  Faults faults;
  Reader reader(state, faults);
  try {
    object.visit(reader);
  } catch (const Error& error) {
    faults.add("the state", error.what());
  }
  reader.refuse_others();
  faults.throw_as("this is no state of " + what);
}

}  // namespace cadre::optim::detail
