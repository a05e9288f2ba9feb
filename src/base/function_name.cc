#include "cadre/detail/function_name.h"

#include <string>
#include <typeinfo>

#include "base/type_name.h"
#include "cadre/error.h"

namespace cadre::detail {

// A plain function is Named<&train>; an instance of a template has its types: Named<&(void train<double>(int))>.
void refuse_template(const std::type_info& named) {
  const std::string name = base::type_name(named);
  if (!name.ends_with(")>")) return;
  throw InvalidArgument("an instance of a template has no name to find it by: write a plain function that calls " +
                        name.substr(name.find('&') + 1, name.size() - name.find('&') - 2));
}

}  // namespace cadre::detail
