// The experiments of a dashboard: those that `cadre ls` lists below some directories and URIs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "dashboard/experiments.h"
#include "report/curves.h"
#include "storage/storage.h"
#include "tune/results/result_reader.h"

namespace cadre::cli {

class DashboardExperiments : public dashboard::Experiments {
 public:
  explicit DashboardExperiments(std::vector<std::string> roots) : roots_(std::move(roots)) {}

  dashboard::Found find() override;
  dashboard::Stamp stamp(const dashboard::Place& place) override;
  bool is_remote(const dashboard::Place& place) override;
  dashboard::Reading read(const dashboard::Place& place, bool with_document) override;

 private:
  // An experiment that runs in a directory. Only its new rows are read.
  struct Growing {
    explicit Growing(const std::string& directory) : results(directory) {}
    tune::ResultReader results;
    report::CurveReader curves = {};
    std::uint64_t generation = 0;  // of the results whose curves were read
  };

  void find_below(const std::string& root, dashboard::Found& found) const;
  store::ExperimentReader::Check check_of(const dashboard::Place& place) const;
  dashboard::Reading read_whole(const dashboard::Place& place, bool with_document);
  dashboard::Reading read_growing(const dashboard::Place& place, bool with_document);
  storage::Storage& storage_of(const std::string& uri);

  std::vector<std::string> roots_;
  std::map<std::string, std::unique_ptr<storage::Storage>> storages_ = {};  // by URI
  std::set<std::string> checked_ = {};                                // locations whose whole store was checked once
  std::map<std::string, Growing> growing_ = {};                       // by location
  std::map<std::string, std::vector<dashboard::Place>> latest_ = {};  // by URI, when it last answered
  std::map<std::string, dashboard::Stamp> stamps_ = {};               // by the location of a remote experiment
};

}  // namespace cadre::cli
