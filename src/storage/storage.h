// A place for files that is not a local disk: an object store, or a directory of a network file system. Files have
// names with slashes, relative to one root; folders are implicit. Readers never get part of a replaced file.
//
// All functions may be called by several threads at once and block until the storage answers. They throw
// StorageFault, or OutOfSpace or another StorageError for a local file.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cadre/error.h"
#include "storage/uri.h"

namespace cadre::storage {

class StorageFault : public StorageError {
 public:
  enum class Kind {
    passing,  // the storage is busy, unreachable or does not answer: a retry may succeed
    denied,   // access denied: the user must provide or renew credentials
    lasting,  // any other fault: a retry will fail again
  };
  StorageFault(Kind kind, const std::string& message) : StorageError(message), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

// The size and checksum of the transferred bytes.
struct Contents {
  std::int64_t size = 0;       // bytes
  std::uint64_t checksum = 0;  // base::Checksum
  bool operator==(const Contents&) const = default;
};
// Returns the checksum as 16 hexadecimal digits, the form used in lists of files.
std::string checksum_text(const Contents& contents);

struct StoredFile {
  std::string name = {};
  std::int64_t size = 0;  // bytes
  double modified = 0;    // seconds since 1970 by the storage's clock
};

// A local file to upload. Its upload throws Interrupted soon after `stop` has become true, without a whole file in the
// storage; nullptr: nothing ends it early.
struct FileToUpload {
  FileToUpload(std::filesystem::path file, const std::atomic<bool>* stopping = nullptr)
      : path(std::move(file)), stop(stopping) {}

  std::filesystem::path path;
  const std::atomic<bool>* stop;
};

// An identifier of a file's present contents: differs from those of earlier and later contents. Each storage has its
// own format.
using Version = std::string;

struct VersionedBytes {
  std::string bytes;
  Version version;
  bool operator==(const VersionedBytes&) const = default;
};

class Storage {
 public:
  virtual ~Storage() = default;

  // Writes a file, replacing an existing one.
  virtual void write(const std::string& name, std::string_view bytes) = 0;
  // Uploads a local file, up to its size when it was opened, replacing an existing one.
  virtual Contents upload(const FileToUpload& file, const std::string& name) = 0;

  // Returns the content of a file; empty if it does not exist.
  virtual std::optional<std::string> read(const std::string& name) = 0;
  // Downloads into a local file that is made or replaced. A missing file is a fault.
  virtual Contents download(const std::string& name, const std::filesystem::path& file) = 0;

  // Returns the size and time of a file; empty if it does not exist.
  virtual std::optional<StoredFile> find(const std::string& name) = 0;
  // Returns all files below a folder at any depth, with names relative to the root; empty if there is no such folder.
  virtual std::vector<StoredFile> list(const std::string& folder) = 0;

  // Removes a file; does nothing if it does not exist.
  virtual void remove(const std::string& name) = 0;
  // Removes a folder with all files below it.
  virtual void remove_folder(const std::string& folder) = 0;
  // Removes what writers that were killed have left half-written, of which no other function knows. A writer that has
  // written nothing for a minute counts as killed; if it was not, its write is a fault that passes. Passes over what
  // cannot be removed.
  virtual void remove_unfinished() {}

  // ---- Several writers of one file. A file is written either by these functions or by those above, never by both.

  // Returns true if checking and writing are one atomic step in write_if() and upload_if(). Otherwise another writer
  // may write in between.
  virtual bool has_conditional_writes() { return false; }
  // Returns the content and its version, read consistently; empty if there is no such file.
  virtual std::optional<VersionedBytes> read_versioned(const std::string& name);
  virtual std::optional<Version> version_of(const std::string& name);
  // Writes if the file still has the version `expected` (empty: does not exist). Returns its new version, or nothing,
  // without writing, if the file has another version. After a fault or an internal retry it is unknown whether the
  // file was written: the caller must read it.
  virtual std::optional<Version> write_if(const std::string& name, std::string_view bytes,
                                          const std::optional<Version>& expected);
  // Does the same with a local file, up to its size when it was opened.
  virtual std::optional<Version> upload_if(const FileToUpload& file, const std::string& name,
                                           const std::optional<Version>& expected);
};

// Loads the library that open_storage needs for a URI, if it needs one. A thread other than the main thread of a host
// comes after this: the host's interpreter, which may be needed once, may belong to the main thread. Throws
// InvalidArgument if the library is missing.
void prepare_storage(const Uri& uri);

// Opens the storage with its root at a URI. Writes nothing and does not check if the storage can be reached. Throws
// InvalidArgument for an unknown scheme, or if the library for the scheme is missing.
std::unique_ptr<Storage> open_storage(const Uri& uri);

}  // namespace cadre::storage
