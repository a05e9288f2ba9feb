#include "object_storage/conditional_storage.h"

#include <fmt/format.h>

#include <chrono>
#include <random>
#include <utility>

#include "storage/copy.h"
#include "storage/retry.h"

namespace cadre::storage {
namespace fs = std::filesystem;
namespace {

// Writes a new file on conditions that hold and on others. Returns true if the others are refused. Returns nothing if a
// write is refused whose condition held: its response may have been lost, and its retry found what it had written.
std::optional<bool> checks_conditions(Storage& storage, const std::string& name) {
  const auto first = storage.write_if(name, "1", std::nullopt);
  if (!first) return std::nullopt;
  if (storage.write_if(name, "another", std::nullopt)) return false;
  const auto second = storage.write_if(name, "2", first);
  if (!second) return std::nullopt;
  return second != first && !storage.write_if(name, "another", first) && storage.read(name) == "2";
}

}  // namespace

ObjectPlace place_of(const std::string& root) {
  const std::size_t slash = root.find('/');
  ObjectPlace place{.bucket = root.substr(0, slash), .prefix = slash == root.npos ? "" : root.substr(slash + 1)};
  while (place.prefix.ends_with('/')) place.prefix.pop_back();
  if (!place.prefix.empty()) place.prefix += '/';
  return place;
}

ConditionalStorage::ConditionalStorage(Uri uri, std::shared_ptr<arrow::fs::FileSystem> file_system,
                                       const std::string& root, std::unique_ptr<ObjectProtocol> protocol)
    : ObjectStorage(std::move(uri), std::move(file_system), root),
      place_(place_of(root)),
      protocol_(std::move(protocol)) {}

std::optional<HttpAnswer> ConditionalStorage::ask(const char* doing, const std::string& name,
                                                  const std::function<HttpRequest()>& make,
                                                  const std::function<HttpBody()>& body) {
  const auto attempt = [&] {
    const HttpRequest request = make();  // before body(), which may send a file that make() has opened
    return send(request, body ? body() : HttpBody{});
  };
  const auto passes = [&](const HttpAnswer& answer) { return protocol_->meaning_of(answer) == ObjectAnswer::passing; };
  HttpAnswer answer = send_with_attempts(attempt, passes);
  if (protocol_->meaning_of(answer) == ObjectAnswer::outdated && protocol_->renew_credentials())
    answer = send_with_attempts(attempt, passes);
  switch (protocol_->meaning_of(answer)) {
    case ObjectAnswer::done:
      return answer;
    case ObjectAnswer::missing:
    case ObjectAnswer::other:
      return std::nullopt;
    case ObjectAnswer::passing:
    case ObjectAnswer::outdated:
    case ObjectAnswer::fault:
      break;
  }
  throw_fault(answer, doing, shown_name(name));
}

bool ConditionalStorage::has_conditional_writes() {
  constexpr int kTries = 3;
  constexpr auto kPatience = std::chrono::seconds(2);  // Google may refuse a second write of an object within a second
  std::optional<bool> are_checked;
  for (int i = 0; !are_checked && i < kTries; ++i) {
    const std::string name = fmt::format(".cadre_trial_{:08x}", std::random_device()());
    try {
      are_checked = with_patience(kPatience, [&] { return checks_conditions(*this, name); });
    } catch (const StorageFault& fault) {
      if (fault.kind() != StorageFault::Kind::lasting) throw;
      uses_protocol_ = false;  // such as 501, not implemented
      are_checked = false;
    }
    remove(name);
  }
  return are_checked.value_or(false);
}

std::optional<VersionedBytes> ConditionalStorage::read_versioned(const std::string& name) {
  if (!uses_protocol_) return ObjectStorage::read_versioned(name);
  auto answer = ask("read", name, [&] { return protocol_->read(key(name)); });
  if (!answer) return std::nullopt;
  Version version = protocol_->version_in(*answer);
  return VersionedBytes{std::move(answer->body), std::move(version)};
}

std::optional<Version> ConditionalStorage::version_of(const std::string& name) {
  if (!uses_protocol_) return ObjectStorage::version_of(name);
  const auto answer = ask("look at", name, [&] { return protocol_->look_at(key(name)); });
  return answer ? std::optional(protocol_->version_in(*answer)) : std::nullopt;
}

std::optional<Version> ConditionalStorage::write_if(const std::string& name, std::string_view bytes,
                                                    const std::optional<Version>& expected) {
  if (!uses_protocol_) return ObjectStorage::write_if(name, bytes, expected);
  const auto answer = ask(
      "write", name, [&] { return protocol_->write(key(name), std::ssize(bytes), expected); },
      [&] { return HttpBody{std::ssize(bytes), [rest = bytes]() mutable { return std::exchange(rest, {}); }}; });
  return answer ? std::optional(protocol_->version_in(*answer)) : std::nullopt;
}

std::optional<Version> ConditionalStorage::upload_if(const FileToUpload& file, const std::string& name,
                                                     const std::optional<Version>& expected) {
  if (!uses_protocol_) return ObjectStorage::upload_if(file, name, expected);
  std::optional<LocalFile> source;  // opened again for each attempt
  const auto answer = ask(
      "write", name,
      [&] {
        source.emplace(file);
        return protocol_->write(key(name), static_cast<std::int64_t>(source->size()), expected);
      },
      [&] { return HttpBody{static_cast<std::int64_t>(source->size()), [&] { return (*source)(); }}; });
  return answer ? std::optional(protocol_->version_in(*answer)) : std::nullopt;
}

void ConditionalStorage::remove(const std::string& name) {
  if (!uses_protocol_) return ObjectStorage::remove(name);
  ask("remove", name, [&] { return protocol_->remove(key(name)); });
}

}  // namespace cadre::storage
