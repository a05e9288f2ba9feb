// Forms of options that Tune and Train store beside those of base/stored.h.
#pragma once

#include "base/stored.h"
#include "cadre/checkpoint_config.h"

namespace cadre {

// The direction is stored beside it.
inline Value stored_form(const Objective& metric) { return metric.name; }
inline void read_stored(Objective& metric, const base::Stored& stored) { metric.name = stored.get<std::string>(); }

}  // namespace cadre
