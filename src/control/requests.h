// Requests to a running controller, such as to pause. They are files in its run's directory, so there is no port, and
// only who may write there can make one: the owner. A request is answered when what follows from it is in the store.
//
// A request is a file `.requests/<id>.json`, {"request": ..., "until": seconds since 1970}, which the controller takes
// away when it reads it, so that none is carried out twice. The answer, `.requests/<id>.answer`, has "error" if it was
// refused; who asked takes it away, or the controller after an hour. docs/formats.md describes both.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cadre/value.h"

namespace cadre::control {

// The controller's end.
class Requests {
 public:
  // The time between two looks at the directory.
  static constexpr auto kPeriod = std::chrono::milliseconds(250);

  explicit Requests(std::filesystem::path run) : folder_(std::move(run) / kFolder) {}

  struct Request {
    std::string id = {};
    Dict content = {};
  };
  static constexpr auto kAnswersStay = std::chrono::hours(1);

  // Takes the requests that have come, oldest first. Answers those that cannot be read or are too old; ignores those of
  // other users. Removes answers that nobody has fetched for an hour. Does not throw.
  std::vector<Request> take();
  // Answers a request; `error`: why it is refused, or empty. Does not throw: whoever asked may be gone.
  void answer(const std::string& id, const std::string& error);

  static constexpr const char* kFolder = ".requests";

 private:
  std::filesystem::path folder_;
};

// The time after which a request that was not answered is given up.
inline constexpr std::chrono::seconds kAnswerTimeout{30};

// A request to the controller of the run in a directory, which waits for its answer. One that is destroyed before the
// controller has taken it is withdrawn.
class PendingRequest {
 public:
  // The time between two calls of is_answered().
  static constexpr auto kPeriod = std::chrono::milliseconds(20);

  // Throws NotFound if nothing runs there, and StorageError if nothing can be written there.
  PendingRequest(std::filesystem::path directory, const Dict& content, std::chrono::milliseconds patience);
  PendingRequest(const PendingRequest&) = delete;
  PendingRequest& operator=(const PendingRequest&) = delete;
  ~PendingRequest();

  // Returns true once the request was carried out. Throws InvalidArgument with the reason if it was refused, and
  // StorageError if no answer has come in time or the controller has ended: then it may still have been carried out, if
  // the message says so. Must not be called again after that.
  bool is_answered();
  // Waits until it is carried out. Throws as is_answered() does.
  void wait();

 private:
  bool is_running() const;

  std::filesystem::path directory_;
  std::filesystem::path request_ = {};  // its file
  std::filesystem::path answer_ = {};
  double until_ = 0;  // seconds since 1970
};

// Makes such a request and waits for the answer. Throws as both of its functions do.
void ask_controller(const std::filesystem::path& directory, const Dict& content,
                    std::chrono::milliseconds patience = kAnswerTimeout);

}  // namespace cadre::control
