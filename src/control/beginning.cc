#include "control/beginning.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/json.h"
#include "base/system_error.h"
#include "cadre/error.h"
#include "publish/restore.h"
#include "store/experiment_reader.h"
#include "store/read_store.h"
#include "worker/root_engine.h"

namespace cadre::control {
namespace fs = std::filesystem;
namespace {

StoredOptions options_in(const fs::path& directory) {
  const std::string source = "the options in " + (directory / store::ExperimentStore::kFileName).string();
  const store::ExperimentReader reader(directory, store::ExperimentReader::Check::rows);
  const store::ExperimentInfo info = reader.info();
  return {.options = base::parse_json(info.options, source),
          .first_options = info.first_options.empty() ? Value() : base::parse_json(info.first_options, source),
          .source = source};
}

// Returns true also if the store is damaged: restore() describes that.
bool holds_one_of(const fs::path& directory, const store::Tenant& tenant) {
  return store::has_store(directory) && kind_in(directory).value_or(tenant.kind) == tenant.kind;
}

// Returns files that only this session has written, in the directories in which its workers can work.
std::vector<fs::path> marks_of(const Session& session) {
  std::vector<fs::path> marks{session.directory / store::ExperimentLock::kFileName};
  const fs::path published = session.publication ? session.publication->directory() : fs::path();
  if (!published.empty()) marks.push_back(published / publish::kLeaseFile);
  return marks;
}

}  // namespace

std::optional<std::string> kind_in(const fs::path& directory) {
  if (!store::has_store(directory)) return std::nullopt;
  try {
    return Config(options_in(directory).options).get<std::string>("kind");
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool can_restore(const fs::path& directory, const PublishConfig& config, const store::Tenant& tenant) {
  const auto uri = publish::published_at(directory);
  if (!uri) return holds_one_of(directory, tenant);
  if (!publish::can_continue(*uri, config)) return false;
  if (!publish::is_published(*uri)) return holds_one_of(publish::local_directory(*uri, config), tenant);
  try {
    return holds_one_of(*publish::reading_copy(*uri), tenant);
  } catch (const StorageError&) {  // damaged
    return true;
  }
}

fs::path find(const fs::path& directory, const PublishConfig& config, const store::Tenant& tenant,
              std::vector<std::string>& notes) {
  return base::with_storage_errors([&] {
    if (const auto uri = publish::published_at(directory)) {
      publish::WorkingDirectory working = publish::working_directory(*uri, config);
      std::ranges::move(working.notes, std::back_inserter(notes));
      return fs::canonical(working.path);
    }
    if (store::has_store(directory)) return fs::canonical(directory);
    throw NotFound(fmt::format("there is no {} in {} to continue: it has no file {}", tenant.what,
                               fs::absolute(directory).lexically_normal().string(), store::ExperimentStore::kFileName));
  });
}

StoredOptions read_options(const fs::path& directory) {
  const store::ExperimentLock lock(directory);
  return base::with_storage_errors([&] { return options_in(directory); });
}

Session begin(const fs::path& directory, const publish::Place& place, const store::Tenant& tenant,
              const std::function<void()>& write_objects, const std::string& function, const Dict& options) {
  store::ExperimentLock lock(directory);
  auto publication = publish::Publication::begin(place, directory, tenant.restore);
  const auto create_store = [&] {
    try {
      write_objects();  // before the store exists, which refers to them
      return store::ExperimentStore::create(directory, {directory.filename(), function, base::to_json(options)});
    } catch (...) {
      std::error_code ignored;
      if (!store::has_store(directory)) fs::remove_all(directory, ignored);  // while it is locked
      throw;
    }
  };
  store::ExperimentStore store = create_store();
  return {directory, std::move(lock), std::move(publication), std::move(store)};
}

Session resume(const fs::path& directory) {
  store::ExperimentLock lock(directory);
  auto publication = publish::Publication::resume(directory);
  return {directory, std::move(lock), std::move(publication), store::ExperimentStore::open(directory)};
}

std::unique_ptr<engine::Engine> make_engine(const Session& session, const store::Tenant& tenant, IfExists if_exists,
                                            bool has_ended) {
  try {
    return has_ended ? worker::make_idle_engine() : worker::make_root_engine(session.directory, marks_of(session));
  } catch (const Interrupted&) {
    throw_interrupted(session, tenant, if_exists);
  }
}

void throw_interrupted(const Session& session, const store::Tenant& tenant, IfExists if_exists) {
  throw Interrupted(fmt::format("the {} {} was interrupted, and everything that was reported is saved. {}", tenant.what,
                                session.name(), store::how_to_continue(if_exists, tenant.restore, session.directory)));
}

}  // namespace cadre::control
