// The documents that `--json` prints. The keys are stable: keys may be added, none is removed.
#pragma once

#include "cadre/tune/result.h"

namespace cadre::cli {

Dict document_of(const tune::ExperimentSummary& summary, const tune::ResultGrid& grid);
Dict document_of(const tune::Result& trial);

}  // namespace cadre::cli
