// Options of an experiment before and after an extension (cadre/tune/extension.h).
#pragma once

#include "cadre/tune/extension.h"
#include "cadre/tune/tuner.h"

namespace cadre::tune {

// Replaces the options that the extension has.
void extend(TunerOptions& options, const Extension& extension);

// Returns the extension that makes `before` have what `after` has.
Extension extension_between(const TunerOptions& before, const TunerOptions& after);

}  // namespace cadre::tune
