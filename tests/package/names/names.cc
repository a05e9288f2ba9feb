// The names of members, enumerators, types and functions are the same with each compiler, wherever they are declared.
#include "cadre/detail/enum_names.h"
#include "cadre/detail/function_name.h"
#include "cadre/detail/member_names.h"

using namespace cadre::detail;

namespace {

struct Plain {
  int n_x;
  double y;
  enum class Kind { up, side_ways };
  Kind kind;
};
template <class T>
struct Generic {
  T first;
  int second;
};
void train(int) {}

}  // namespace

namespace outer {
namespace {
struct Nested {
  Generic<Plain> generic;
  Plain::Kind kind;
};
}  // namespace
}  // namespace outer

template <class T, std::size_t Size>
constexpr bool has_members(const char* const (&expected)[Size]) {
  const auto names = member_names<T>();
  if (names.size() != Size) return false;
  for (std::size_t i = 0; i < Size; ++i) {
    if (names[i] != expected[i]) return false;
  }
  return true;
}

int main() {
  struct Local {
    int value;
    outer::Nested nested;
  };
  static_assert(has_members<Plain>({"n_x", "y", "kind"}));
  static_assert(has_members<Generic<Plain>>({"first", "second"}));
  static_assert(has_members<outer::Nested>({"generic", "kind"}));
  static_assert(has_members<Local>({"value", "nested"}));
  static_assert(type_name<outer::Nested>() == "Nested" && type_name<Local>() == "Local");
  static_assert(function_name<train>() == "train");
  static_assert(enum_name(Plain::Kind::side_ways) == "side_ways");
  static_assert(member_pointer_name<&Plain::n_x>() == "n_x");
  // Without optimisation too nothing is left that a linker would look for.
  return static_cast<int>(member_names<Local>().size()) - 2;
}
