#include "cli/dashboard_controls.h"

#include <chrono>
#include <filesystem>
#include <utility>

#include "cli/requests.h"
#include "control/requests.h"

namespace cadre::cli {
namespace {

constexpr std::chrono::seconds kAnswerTimeout(10);  // a person looks at the page meanwhile

class AskedExperiment : public dashboard::Controls::Asked {
 public:
  AskedExperiment(const std::filesystem::path& directory, Dict request)
      : request_(std::move(request)), pending_(directory, request_, kAnswerTimeout) {}

  std::optional<std::string> answer() override {
    if (!pending_.is_answered()) return std::nullopt;
    return consequence_of(request_);
  }

 private:
  Dict request_;
  control::PendingRequest pending_;
};

}  // namespace

std::unique_ptr<dashboard::Controls::Asked> DashboardControls::ask(const std::string& location, const Dict& request) {
  Dict checked = checked_request(request);
  return std::make_unique<AskedExperiment>(controlled_directory(location), std::move(checked));
}

}  // namespace cadre::cli
