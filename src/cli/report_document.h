// The document of a report (report/document.h), for experiments that the commands have read.
#pragma once

#include <filesystem>

#include "cadre/tune/result.h"
#include "cli/training_run.h"
#include "report/curves.h"

namespace cadre::cli {

// Throw NotFound or StorageError if results cannot be read.
Value report_document(const tune::ResultGrid& results, report::CurveReader& curves);
Value report_document(const tune::ResultGrid& results);
Value report_document(const TrainingRun& run, const std::filesystem::path& directory);

}  // namespace cadre::cli
