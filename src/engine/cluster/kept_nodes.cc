#include "engine/cluster/kept_nodes.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/checksum.h"
#include "base/directory.h"
#include "base/file.h"
#include "base/json.h"
#include "base/system_error.h"
#include "cadre/error.h"
#include "cadre/stored.h"

namespace cadre::engine::cluster {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kNodesFormat = 3;

struct NodesDocument {
  std::int64_t format = kNodesFormat;
  std::string directory = {};
  Value nodes = {};
  std::string xxh3 = {};  // of `nodes` as JSON
  std::vector<WaitingNodes> waiting = {};
};

std::string nodes_checksum(const Value& nodes) {
  return fmt::format("{:016x}", base::checksum_of(base::to_json(nodes.dict())));
}

// Returns what tells a directory from its copies, and stays the same when it is moved.
std::string identity_of(const fs::path& directory) {
  struct stat status{};
  if (::stat(directory.c_str(), &status) != 0) base::throw_storage_error("look at", directory);
  return fmt::format("{}.{}", status.st_dev, status.st_ino);
}

// The file says which processes and jobs are ended: another user must not have written it.
void require_private(const fs::path& file) {
  struct stat status{};
  if (::lstat(file.c_str(), &status) != 0) base::throw_storage_error("look at", file);
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid() || (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    throw StorageError("it is no file that only this user can read and write");
}

std::int64_t nodes_left(const KeptRequest& kept) {
  return kept.request.nodes - static_cast<std::int64_t>(kept.ended.size());
}

bool is_same_kind(NodeRequest one, const NodeRequest& other) {
  one.id = other.id;
  one.nodes = other.nodes;
  return one == other;
}

}  // namespace

std::string to_text(const KeptNodes& nodes, const std::string& directory, const std::vector<WaitingNodes>& waiting) {
  const Value content = to_stored(nodes);
  const NodesDocument document{
      .directory = directory, .nodes = content, .xxh3 = nodes_checksum(content), .waiting = waiting};
  return base::to_json(to_stored(document).dict()) + "\n";
}

KeptNodes parse_kept_nodes(std::string_view text, const std::string& directory) {
  try {
    const auto document = document_from_value<NodesDocument>(base::parse_json(text, "its text"));
    if (!document.nodes.is_dict() || nodes_checksum(document.nodes) != document.xxh3)
      throw StorageError("it is damaged: its contents do not have its checksum");
    if (document.directory != directory) throw StorageError("it was copied together with its directory");
    return complete_from_value<KeptNodes>(document.nodes);
  } catch (const InvalidArgument& error) {
    throw StorageError(error.what());
  }
}

bool has_kept_nodes(const fs::path& directory) {
  struct stat status{};
  return !directory.empty() && ::lstat((directory / kNodesFile).c_str(), &status) == 0;
}

std::optional<KeptNodes> read_kept_nodes(const fs::path& directory) {
  if (!has_kept_nodes(directory)) return std::nullopt;
  const fs::path path = directory / kNodesFile;
  try {
    require_private(path);
    return parse_kept_nodes(base::read_file(path), identity_of(directory));
  } catch (const StorageError& error) {
    throw StorageError(
        fmt::format("{} does not lead to the nodes of an earlier process: {}", path.string(), error.what()));
  }
}

std::optional<std::vector<WaitingNodes>> read_waiting_nodes(const fs::path& directory) {
  const fs::path path = directory / kNodesFile;
  try {
    if (!has_kept_nodes(directory)) return std::nullopt;
    require_private(path);
    return document_from_value<NodesDocument>(base::parse_json(base::read_file(path), "its text")).waiting;
  } catch (const Error& error) {
    throw StorageError(fmt::format("{}: {}", path.string(), error.what()));
  }
}

void write_kept_nodes(const fs::path& directory, const KeptNodes& nodes, const std::vector<WaitingNodes>& waiting) {
  base::replace_private_file(directory / kNodesFile, to_text(nodes, identity_of(directory), waiting));
}

void remove_kept_nodes(const fs::path& directory) { base::remove_tree(directory / kNodesFile); }

std::string fault_of(const KeptNodes& kept, const KeptNodes& own) {
  if (kept.provider != own.provider)
    return fmt::format("they are {}, and this program asks for {}", kept.provider, own.provider);
  if (kept.host != own.host) return fmt::format("they dial {}, and this is {}", kept.host, own.host);
  if (kept.build != own.build) return "they run another build of the program";
  if (kept.command != own.command) return "they run the program with other arguments";
  if (kept.working_directory != own.working_directory)
    return fmt::format("they run the program in {}, and this is {}", kept.working_directory, own.working_directory);
  return "";
}

Continuation continue_requests(const std::vector<KeptRequest>& kept, const std::vector<NodeRequest>& wanted) {
  Continuation continuation;
  std::vector<bool> is_claimed(kept.size());
  for (const NodeRequest& kind : wanted) {
    std::int64_t missing = kind.nodes;
    for (std::size_t i = 0; i < kept.size() && missing > 0; ++i) {
      const std::int64_t left = nodes_left(kept[i]);
      if (is_claimed[i] || left <= 0 || !is_same_kind(kept[i].request, kind)) continue;
      if (kind.all_or_none && left != missing) continue;
      is_claimed[i] = true;
      continuation.claimed.push_back(kept[i]);
      std::int64_t surplus = std::max<std::int64_t>(left - missing, 0);
      for (std::int64_t ordinal = kept[i].request.nodes - 1; surplus > 0; --ordinal) {
        if (kept[i].ended.contains(ordinal)) continue;
        continuation.surplus.emplace_back(kept[i].request.id, ordinal);
        --surplus;
      }
      missing -= std::min(left, missing);
    }
    if (missing == 0) continue;
    continuation.missing.push_back(kind);
    continuation.missing.back().nodes = missing;
  }
  return continuation;
}

}  // namespace cadre::engine::cluster
