// Where a storage lies: "s3://bucket/folder?region=eu-central-1". Such texts stand where a path can: in `storage_path`
// and in what restores.
#pragma once

#include <string>
#include <string_view>

namespace cadre::storage {

struct Uri {
  std::string scheme = {};    // in small letters
  std::string location = {};  // "bucket/folder", for files "/folder"; decoded, without slashes at the end
  std::string query = {};     // options of the file system, as they were given; for children too

  bool operator==(const Uri&) const = default;
};

// Whether a text is meant as a URI: a scheme and "://". Paths never are.
bool is_uri(std::string_view text);
// Throws InvalidArgument that says what is wrong. One that carries a password or a key is refused: URIs are shown and
// stored.
Uri parse_uri(std::string_view text);
// What parse_uri reads.
std::string to_string(const Uri& uri);
// For people: without the options.
std::string shown(const Uri& uri);

// One of its options; empty where there is none.
std::string option(const Uri& uri, std::string_view name);

// What lies under a name there, and back.
Uri operator/(const Uri& uri, std::string_view name);
Uri parent_of(const Uri& uri);
std::string name_of(const Uri& uri);

}  // namespace cadre::storage
