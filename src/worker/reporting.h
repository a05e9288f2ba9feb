// How the function of this process reports results: functions of another kind of worker do not record any.
#pragma once

#include <string_view>

namespace cadre::worker {

// Registers the way of this process until destroyed.
class Reporting {
 public:
  // `way` ends the sentence "this worker reports with …", and must live as long: "tune::report".
  explicit Reporting(std::string_view way);
  Reporting(const Reporting&) = delete;
  Reporting& operator=(const Reporting&) = delete;
  ~Reporting();
};

// Handles the call of a report function that is not this process's. Throws Error in a worker that reports in another
// way, because its results would be lost; elsewhere warns the first time.
void report_nowhere(std::string_view function);

}  // namespace cadre::worker
