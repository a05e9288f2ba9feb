#include "cadre/tune/searcher.h"

#include "cadre/error.h"
#include "tune/held_options.h"

namespace cadre::tune {

void Searcher::on_result(TrialIndex, const Metrics&) {}
void Searcher::load(const Value& state) {
  if (!state.is_null()) throw InvalidArgument("the state of a searcher without load() is not null");
}

namespace detail {

template <>
bool register_options<Searcher, SearcherSetting>(std::string_view name,
                                                 OptionsReader<Searcher, SearcherSetting>::Pointer read) {
  option_types<Searcher, SearcherSetting>().add(name, read);
  return true;
}

}  // namespace detail

template Value stored_form(const AnySearcher& options);
template void read_stored(AnySearcher& options, const Stored& stored);

}  // namespace cadre::tune
