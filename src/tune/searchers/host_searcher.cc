#include "cadre/tune/searchers/host_searcher.h"

#include "cadre/host.h"
#include "cadre/tune/tuner.h"
#include "tune/held_options.h"
#include "worker/host.h"

namespace cadre {

std::unique_ptr<tune::Searcher> Host::make_searcher(const HostFunction&, const tune::SearcherSetting&) {
  throw Error("this host has no searchers");
}

namespace tune {

std::unique_ptr<Searcher> HostSearcher::make(const SearcherSetting& setting) const {
  return worker::host_of(name).make_searcher(host_function, setting);
}

void HostSearcher::check(const TunerOptions&, Faults& faults) const {
  worker::check_host(name, "host_function", faults);
}

template class detail::HeldOptionsOf<Searcher, SearcherSetting, HostSearcher>;

}  // namespace tune
}  // namespace cadre
