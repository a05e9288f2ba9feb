#include "publish/publishing.h"

#include <fmt/format.h>

#include "cadre/error.h"

namespace cadre::publish {

void Publishing::find_leftovers(bool is_work_place) {
  if (setting_.publication) leftovers_ = published_names(*setting_.publication->storage);
  is_work_place_ = is_work_place;
}

void Publishing::begin(bool anew) {
  if (!setting_.publication) return;
  publisher_ = std::make_unique<Publisher>(Publisher::Setting{.directory = setting_.directory,
                                                              .uri = setting_.publication->uri,
                                                              .storage = setting_.publication->storage,
                                                              .lease = setting_.publication->lease,
                                                              .begins_anew = anew,
                                                              .leftovers = std::move(leftovers_),
                                                              .is_work_place = is_work_place_,
                                                              .interval = setting_.config.interval,
                                                              .wake = setting_.wake});
}

void Publishing::tick(const std::function<std::set<std::string>()>& needed) {
  if (!publisher_) return;
  for (const std::string& message : publisher_->take_messages()) setting_.say(message);
  require_lease();
  if (publisher_->has_published()) publisher_->keep_only(needed());
}

void Publishing::finish(const std::function<bool()>& give_up, const std::set<std::string>& needed) {
  if (!publisher_) return;
  const std::string where = shown(setting_.publication->uri);
  setting_.say(fmt::format("Publishing what is left at {}; Ctrl-C leaves it at that", where));
  const std::string left = publisher_->finish(setting_.config.patience, give_up);
  require_lease();
  publisher_->keep_only(needed);
  publisher_->finish_removals();
  for (const std::string& message : publisher_->take_messages()) setting_.say(message);
  setting_.say(left.empty() ? fmt::format("Everything is published at {}", where)
                            : fmt::format("Warning: {}. It is all in {}: restoring that directory, or the URI on this "
                                          "machine, publishes it",
                                          left, setting_.directory.string()));
}

void Publishing::require_lease() const {
  if (const std::string why = publisher_->lost(); !why.empty())
    throw StorageError(
        fmt::format("{}. What this process has done and not published is in {} only; look at it there, or "
                    "restore from {}, which continues what its successor has published",
                    why, setting_.directory.string(), shown(setting_.publication->uri)));
}

bool Publishing::takes_over_removal(const std::filesystem::path& directory) {
  return publisher_ && directory.is_relative() && publisher_->takes_over_removal(directory.string());
}

std::string description_of(const Publication& publication, const PublishConfig& config) {
  std::string text = fmt::format("Published at {} every {:g} s", shown(publication.uri), config.interval.count());
  if (!publication.lease->is_fenced())
    text +=
        "; its writes know no conditions, so a controller that is cut off for longer than a minute, and then comes "
        "back, may damage what its successor has published";
  if (const std::string& gone = publication.lease->predecessor(); !gone.empty())
    text += fmt::format("; takes over from {}, which is gone", gone);
  return text;
}

}  // namespace cadre::publish
