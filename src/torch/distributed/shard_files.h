// The files of a state in parts, one of each rank: "<name>_<rank>_of_<ranks>.pt".
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "torch/pickle_value.h"

namespace cadre::distributed {

// The file of one rank.
struct Shard {
  std::filesystem::path file;
  pt::Value content;

  // Throws InvalidArgument that names the file.
  [[noreturn]] void refuse(const std::string& why) const;
  // Returns an entry of the content or, with two names, of an entry. Throws InvalidArgument if there is none.
  const pt::Value& at(const char* name) const;
  const pt::Value& at(const char* name, const char* inner_name) const;
};

std::filesystem::path shard_file(const std::filesystem::path& directory, const std::string& name, int rank, int ranks);

// Returns the files of all ranks, by rank. `what`: "the state of an optimizer", for messages. Throws NotFound if there
// are none, InvalidArgument if one of them is missing, or if they are of several numbers of ranks.
std::vector<std::filesystem::path> find_shards(const std::filesystem::path& directory, const std::string& name,
                                               const std::string& what);

Shard read_shard(const std::filesystem::path& file);

// Returns the value at a whole number in a dictionary; nullptr if there is none.
const pt::Value* find_number(const pt::Value& dict, std::int64_t number);

// Returns the options of an optimizer's group in the entry "optimizer", for other parameters.
pt::Value group_options(const Shard& shard, std::size_t group, std::vector<pt::Value> parameters);

}  // namespace cadre::distributed
