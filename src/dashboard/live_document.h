// A document that grows, and what has changed in it lately.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "cadre/value.h"

namespace cadre::dashboard {

// One thread updates it; any thread may read it. Versions count from 1; 0: there is no document.
class LiveDocument {
 public:
  struct Sent {
    std::uint64_t version = 0;
    std::string text = {};  // events of a text/event-stream; empty: nothing is new
  };

  // `origin`: part of the events' ids, so that versions of another program or document are not taken for these.
  explicit LiveDocument(std::string origin) : origin_(std::move(origin)) {}

  // Returns false if it is the same document.
  bool update(Value document);
  // Forgets the document, but not its version.
  void clear();
  bool has_document() const;

  // Returns what brings a reader from a version to the present one: "change" events, or a "document" event where the
  // changes are not known any more or are large beside it.
  Sent since(std::uint64_t version);
  // Counts those who look at it: while there are some, it is kept up to date.
  void watch() { ++watchers_; }
  void unwatch() { --watchers_; }
  std::size_t watchers() const { return watchers_; }

  // Returns the version in an id that a reader has from an earlier event; 0 if it is of another document, or none.
  std::uint64_t version_of(std::string_view id) const;

 private:
  static constexpr std::size_t kMostChanges = 64;

  struct Change {
    std::uint64_t version = 0;
    std::string text = {};
  };
  std::string event(const char* name, std::uint64_t version, const std::string& data) const;

  const std::string origin_;
  std::atomic<std::size_t> watchers_ = 0;
  mutable std::mutex mutex_;
  Value document_ = {};
  bool has_document_ = false;
  std::uint64_t version_ = 0;
  std::deque<Change> changes_ = {};  // the latest ones, without gaps
  std::size_t changes_bytes_ = 0;    // in their texts; update() keeps it below 1 MiB or half of whole_
  std::string whole_ = {};           // the "document" event of whole_version_
  std::uint64_t whole_version_ = 0;
};

}  // namespace cadre::dashboard
