#include "train/notices.h"

#include "base/archive.h"
#include "base/overload.h"

namespace cadre::train {

Value to_value(const Notice& notice) {
  return std::visit(base::Overload{[](const FunctionBegins&) { return Value(); },
                                   [](const PromiseEnd& end) { return base::SaveArchive::to_value(end); }},
                    notice);
}

Notice to_notice(const Value& content) {
  if (content.is_null()) return FunctionBegins{};
  PromiseEnd end;
  base::LoadArchive::load(content, end);
  return end;
}

}  // namespace cadre::train
