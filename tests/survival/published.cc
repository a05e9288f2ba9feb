#include "survival/published.h"

#include <set>

#include "cadre/checkpoint.h"
#include "publish/manifest.h"
#include "publish/restore.h"
#include "storage/remote_directory.h"
#include "storage/storage.h"
#include "store/experiment_reader.h"

namespace cadre::survival {
namespace fs = std::filesystem;
namespace {

std::vector<std::string> faults_of_copy(const fs::path& copy, const CheckpointCheck& check) {
  std::vector<std::string> faults;
  const store::ExperimentReader reader(copy, store::ExperimentReader::Check::whole);
  for (const store::CheckpointRow& row : reader.checkpoints()) {
    const auto files = Checkpoint::from_directory(copy / row.directory).as_directory();
    if (const std::string fault = check(row, files.path()); !fault.empty())
      faults.push_back("what is published of " + row.directory + " " + fault);
  }
  return faults;
}

// Returns the names of segments and of folders of checkpoints.
std::set<std::string> listed_names(const publish::Manifest& manifest, const fs::path& copy) {
  std::set<std::string> listed;
  for (const publish::SegmentEntry& entry : manifest.segments) listed.insert(publish::segment_name(entry));
  const store::ExperimentReader reader(copy, store::ExperimentReader::Check::whole);
  for (const store::CheckpointRow& row : reader.checkpoints())
    listed.insert(storage::remote_files(copy / row.directory).value().place_of(row.directory));
  return listed;
}

std::set<std::string> unlisted_names(storage::Storage& storage, const std::set<std::string>& listed) {
  std::set<std::string> names;
  for (const storage::StoredFile& file : storage.list("")) {
    const std::size_t checkpoint = file.name.find("checkpoint_");
    const bool is_checkpoint = checkpoint == 0 || (checkpoint != file.name.npos && file.name[checkpoint - 1] == '/');
    const bool is_of_validator = file.name.starts_with("validations/");
    const std::string folder = is_checkpoint ? file.name.substr(0, file.name.find('/', checkpoint)) : "";
    if (is_checkpoint && !is_of_validator && !listed.contains(folder)) names.insert(folder);
    if (const std::size_t reporting = file.name.find(".reporting_"); reporting != file.name.npos)
      names.insert(file.name.substr(0, file.name.find('/', reporting)));
    const bool is_segment = file.name.starts_with(std::string(publish::kSegmentFolder) + "/");
    if (is_segment && !listed.contains(file.name)) names.insert(file.name);
  }
  return names;
}

}  // namespace

std::vector<std::string> faults_of_published(const storage::Uri& uri, const CheckpointCheck& check) {
  try {
    return faults_of_copy(*publish::reading_copy(uri), check);
  } catch (const std::exception& error) {
    return {std::string("what is published cannot be read: ") + error.what()};
  }
}

std::vector<std::string> faults_of_all_published(const storage::Uri& uri, const fs::path& working_directory,
                                                 const CheckpointCheck& check) {
  std::vector<std::string> faults = faults_of_published(uri, check);
  if (!faults.empty()) return faults;
  const auto storage = storage::open_storage(uri);
  const publish::Manifest manifest =
      publish::parse_manifest(storage->read(publish::kManifestFile).value_or(""), to_string(uri));
  if (manifest.position() != store::position_of(working_directory))
    faults.emplace_back("less is published than the working directory has");
  const auto copy = publish::reading_copy(uri);
  for (const std::string& name : unlisted_names(*storage, listed_names(manifest, *copy)))
    faults.push_back(name + " is published, and nobody lists it");
  return faults;
}

}  // namespace cadre::survival
