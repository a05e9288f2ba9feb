// The requests that pages of the dashboard make to experiments: those of `cadre stop`, `pause`, `resume`, `enqueue`.
#pragma once

#include <memory>
#include <string>

#include "dashboard/controls.h"

namespace cadre::cli {

class DashboardControls : public dashboard::Controls {
 public:
  std::unique_ptr<Asked> ask(const std::string& location, const Dict& request) override;
};

}  // namespace cadre::cli
