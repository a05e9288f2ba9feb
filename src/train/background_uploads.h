// In a worker: uploads by the user's functions, one after the other, in a thread of their own.
#pragma once

#include <functional>
#include <memory>

namespace cadre::train {

class BackgroundUploads {
 public:
  BackgroundUploads();
  // Gives up what has not come to its end: nothing is told any more, and the process is about to end.
  ~BackgroundUploads();
  BackgroundUploads(const BackgroundUploads&) = delete;
  BackgroundUploads& operator=(const BackgroundUploads&) = delete;

  // Runs `upload` and then `tell`, unless they were given up in between. Neither may throw, nor refer to what does not
  // live as long as the process.
  void begin(std::function<void()> upload, std::function<void()> tell);
  // Returns when all have come to their end.
  void finish();

 private:
  struct State;  // which outlives this object while an upload that was given up runs on
  std::shared_ptr<State> state_;
};

}  // namespace cadre::train
