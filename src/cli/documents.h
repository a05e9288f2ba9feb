// What `--json` prints. The keys are stable: others may be added, none go.
#pragma once

#include "cadre/tune/result.h"

namespace cadre::cli {

Dict document_of(const tune::ExperimentSummary& summary, const tune::ResultGrid& grid);
Dict document_of(const tune::Result& trial);

}  // namespace cadre::cli
