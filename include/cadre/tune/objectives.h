/// \file
/// Several objectives as a member of options that are stored.
#pragma once

#include <vector>

#include "cadre/checkpoint_config.h"
#include "cadre/stored.h"
#include "cadre/value.h"

namespace cadre {

/// \cond forms for cadre/stored.h: unlike that of a single objective, they have the directions
Value stored_form(const std::vector<Objective>& metrics);
void read_stored(std::vector<Objective>& metrics, const Stored& stored);
/// \endcond

}  // namespace cadre
