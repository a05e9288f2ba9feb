// Samples of a WebDataset: files in a tar archive whose names are equal up to the first dot.
#pragma once

#include <arrow/type_fwd.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "data/files.h"
#include "data/tar_reader.h"

namespace cadre::data {

// Returns true if a suffix is one of these, or fits one that has * or ?. No patterns: any suffix.
bool fits_suffix(std::string_view suffix, const Names& patterns);

struct WebSample {
  std::string key = {};                                                              // with folders
  std::vector<std::pair<std::string, std::shared_ptr<arrow::Buffer>>> members = {};  // by suffix: "jpg", "left.jpg"

  const arrow::Buffer* find(std::string_view suffix) const;  // null: it has no such member
};

class WebSamples {
 public:
  using Wants = std::function<bool(std::string_view suffix)>;

  // Members that are not wanted are not read.
  WebSamples(const InputFile& file, Wants wants);

  // Returns the next sample; empty at the end. Throws StorageError for an archive that ends early or is damaged, and
  // for samples whose files are not next to each other; it cannot be continued then.
  std::optional<WebSample> next();

 private:
  // The next file of the archive.
  struct Member {
    std::string key;
    std::string suffix;
  };
  std::optional<Member> next_member();

  TarReader archive_;
  Wants wants_;
  std::optional<Member> ahead_;           // read, and not part of the last sample
  std::unordered_set<std::string> keys_;  // of the samples before
};

}  // namespace cadre::data
