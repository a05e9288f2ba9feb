// In a worker: runs the user's upload functions one after the other, in a separate thread.
#pragma once

#include <functional>
#include <memory>

namespace cadre::train {

class BackgroundUploads {
 public:
  BackgroundUploads();
  // Abandons unfinished uploads: their `notify` is not called. The process is about to end.
  ~BackgroundUploads();
  BackgroundUploads(const BackgroundUploads&) = delete;
  BackgroundUploads& operator=(const BackgroundUploads&) = delete;

  // Queues `upload`, followed by `notify`, unless abandoned in between. Neither may throw or refer to anything that may
  // be destroyed before the process ends.
  void begin(std::function<void()> upload, std::function<void()> notify);
  // Blocks until all uploads have finished.
  void finish();

 private:
  struct State;  // outlives this object while an abandoned upload is still running
  std::shared_ptr<State> state_;
};

}  // namespace cadre::train
