// The address of a storage: "s3://bucket/folder?region=eu-central-1". Accepted in place of a path: in `storage_path`
// and by functions that restore.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace cadre::storage {

struct Uri {
  std::string scheme = {};    // lower case
  std::string location = {};  // "bucket/folder", for files "/folder"; decoded, without slashes at the end
  std::string query = {};     // options of the file system as given; children inherit them

  bool operator==(const Uri&) const = default;
};

// Returns true if a text is a URI: a scheme and "://". Paths never are.
bool is_uri(std::string_view text);
// Throws InvalidArgument that describes the error. A URI with a password or key is refused because URIs are shown and
// stored.
Uri parse_uri(std::string_view text);
// Returns the text that parse_uri reads.
std::string to_string(const Uri& uri);
// Returns the URI for messages: without the options.
std::string shown(const Uri& uri);

// Returns the value of an option; empty if it is missing.
std::string option(const Uri& uri, std::string_view name);

// Returns the directory that a URI with the scheme "file" names; empty for all others.
std::filesystem::path directory_of(const Uri& uri);

// Return the child of a URI with a given name, its parent, and its last name.
Uri operator/(const Uri& uri, std::string_view name);
Uri parent_of(const Uri& uri);
std::string name_of(const Uri& uri);

}  // namespace cadre::storage
