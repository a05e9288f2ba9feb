#include "cadre/detail/function_name.h"

#include <string>
#include <string_view>
#include <typeinfo>

#include "base/type_name.h"
#include "cadre/error.h"

namespace cadre::detail {
namespace {

// Returns true for "void train<double>(int)": template arguments precede the parameter list, which is the last
// parenthesised part.
bool is_instance_of_template(std::string_view function) {
  int depth = 0;
  for (std::size_t i = function.size(); i-- > 1;) {
    if (function[i] == ')') ++depth;
    if (function[i] == '(' && --depth == 0) return function[i - 1] == '>';
  }
  return false;
}

}  // namespace

// A plain function gives Named<&(train(int))> or Named<&train>, depending on its linkage; an instance of a template
// gives Named<&(void train<double>(int))>.
void refuse_template(const std::type_info& named) {
  const std::string name = base::type_name(named);
  const std::size_t begin = name.find("&(");
  if (begin == std::string::npos || !name.ends_with(")>")) return;
  const std::string function = name.substr(begin + 2, name.size() - begin - 4);
  if (!is_instance_of_template(function)) return;
  throw InvalidArgument("an instance of a template has no name to find it by: write a plain function that calls " +
                        function);
}

}  // namespace cadre::detail
