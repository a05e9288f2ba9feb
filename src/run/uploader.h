// Brings the parts of a reported checkpoint to where it can be committed, off the event loop: copies them, or sends
// them to a storage.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace cadre::run {

class Uploader {
 public:
  struct Part {
    std::filesystem::path directory = {};  // whole; nobody changes it until the upload is done
    std::filesystem::path copy = {};  // whole, on the run's file system: to be copied to; empty: it is there already
  };
  struct Upload {
    std::int64_t number = 0;
    std::vector<Part> parts = {};
    std::string name = {};  // of the checkpoint, inside the run's directory
  };
  // What became of an upload.
  struct Outcome {
    enum class Again { never, later, when_there_is_space };
    std::int64_t number = 0;
    std::string error = {};      // empty: it is done
    Again again = Again::never;  // when it is worth another try
  };

  virtual ~Uploader() = default;
  // Whether all there is to do is copying what a part says. Otherwise every checkpoint has to be uploaded.
  virtual bool only_copies() const = 0;
  // Begins. What an earlier try has left is no obstacle.
  virtual void begin(Upload upload) = 0;
  // Of those that have come to an end since the last call.
  virtual std::vector<Outcome> take_outcomes() = 0;
};

// Copies to the local disk; blocks are shared where the file system can. `wake` is called in another thread whenever
// take_outcomes() has something new. Its destructor waits for the copies that have begun.
std::unique_ptr<Uploader> make_local_uploader(std::function<void()> wake);

}  // namespace cadre::run
