#include "dashboard/live_document.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "dashboard/change.h"
#include "report/script_json.h"

namespace cadre::dashboard {
namespace {

constexpr std::size_t kFewBytes = std::size_t{1} << 20U;  // of changes, which are not compared with the whole

}  // namespace

std::string LiveDocument::event(const char* name, std::uint64_t version, const std::string& data) const {
  return fmt::format("event: {}\nid: {}-{}\ndata: {}\n\n", name, origin_, version, data);
}

bool LiveDocument::update(Value document) {
  std::optional<Value> change;
  if (has_document_) {  // only this thread changes it
    change = change_between(document_, document);
    if (!change) return false;
  }
  const std::uint64_t version = version_ + 1;
  std::string text = change ? event("change", version, report::to_script_json(*change)) : "";
  const std::lock_guard lock(mutex_);
  version_ = version;
  document_ = std::move(document);
  if (has_document_) {
    changes_bytes_ += text.size();
    changes_.push_back({version, std::move(text)});
    // More of them than would be sent are of no use.
    const std::size_t most_bytes = std::max(kFewBytes, whole_.size() / 2);
    while (!changes_.empty() && (changes_.size() > kMostChanges || changes_bytes_ >= most_bytes)) {
      changes_bytes_ -= changes_.front().text.size();
      changes_.pop_front();
    }
  }
  has_document_ = true;
  return true;
}

void LiveDocument::clear() {
  const std::lock_guard lock(mutex_);
  document_ = {};
  has_document_ = false;
  changes_.clear();
  changes_bytes_ = 0;
  whole_.clear();
  whole_version_ = 0;
}

bool LiveDocument::has_document() const {
  const std::lock_guard lock(mutex_);
  return has_document_;
}

LiveDocument::Sent LiveDocument::since(std::uint64_t version) {
  std::unique_lock lock(mutex_);
  if (!has_document_ || version == version_) return {version, {}};
  if (version != 0 && !changes_.empty() && changes_.front().version <= version + 1 && version < version_) {
    std::string text;
    for (const Change& change : changes_) {
      if (change.version > version) text += change.text;
    }
    return {version_, std::move(text)};
  }
  if (whole_version_ != version_) {
    const Value document = document_;  // shared: the thread that reads experiments need not wait
    const std::uint64_t made = version_;
    lock.unlock();
    std::string text = event("document", made, report::to_script_json(document));
    lock.lock();
    if (made != version_) return {made, std::move(text)};
    whole_ = std::move(text);
    whole_version_ = made;
  }
  return {version_, whole_};
}

std::uint64_t LiveDocument::version_of(std::string_view id) const {
  if (!id.starts_with(origin_) || id.substr(origin_.size(), 1) != "-") return 0;
  const std::string_view digits = id.substr(origin_.size() + 1);
  std::uint64_t version = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), version);
  return fault == std::errc() && end == digits.data() + digits.size() ? version : 0;
}

}  // namespace cadre::dashboard
