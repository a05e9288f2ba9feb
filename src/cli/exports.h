// Results for other programs, each format in a file of its own name.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cadre/tune/result.h"

namespace cadre::cli {

// Writes an experiment and its trials into MLflow's file store in a directory, which may have others. Runs that an
// earlier export has written are replaced. Returns notes for the user, as about names that MLflow does not accept.
// Throws InvalidArgument if the store has another experiment of that name, StorageError.
std::vector<std::string> export_mlflow(const tune::ResultGrid& grid, const std::filesystem::path& store);

// Writes a Parquet file with a row for each result that the options ask for. A column has one type: 64-bit integers,
// doubles (also if some of its values are integers), booleans, or else text, in which values that are no text are JSON.
// Throws NotFound if the library for that is not installed, and StorageError.
void export_parquet(const tune::ResultGrid& grid, const tune::TableOptions& options, const std::filesystem::path& file);

// Writes a journal of Optuna's (JournalFileBackend) with one study, with these objectives. Replaces a file that was
// written so before. Throws InvalidArgument if the file is another one, or there is no objective; StorageError.
void export_optuna(const tune::ResultGrid& grid, const std::vector<Objective>& objectives,
                   const std::filesystem::path& file);

}  // namespace cadre::cli
