// A place for files that is no local disk: an object store, or a directory of a network file system. Files have names
// with slashes, below one root; there are no folders that one makes. Files that are replaced are never seen in part.
//
// All functions may be called by any threads at a time, and wait for the storage. What fails throws StorageFault, or
// OutOfSpace or another StorageError for a local file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cadre/error.h"
#include "storage/uri.h"

namespace cadre::storage {

class StorageFault : public StorageError {
 public:
  enum class Kind {
    passing,  // the storage is busy, cannot be reached or does not answer: it may work a moment later
    denied,   // it does not accept who asks: somebody must renew or give credentials
    lasting,  // anything else: it will fail again
  };
  StorageFault(Kind kind, const std::string& message) : StorageError(message), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

// What went over.
struct Contents {
  std::int64_t size = 0;       // bytes
  std::uint64_t checksum = 0;  // base::Checksum
  bool operator==(const Contents&) const = default;
};
// Of its checksum: 16 hexadecimal digits, as lists of files have them.
std::string checksum_text(const Contents& contents);

struct StoredFile {
  std::string name = {};
  std::int64_t size = 0;  // bytes
  double modified = 0;    // seconds since 1970 by the storage's clock
};

// Tells a file's contents from those that it had before, and from those that it will have. Each storage has its own.
using Version = std::string;

struct VersionedBytes {
  std::string bytes;
  Version version;
  bool operator==(const VersionedBytes&) const = default;
};

class Storage {
 public:
  virtual ~Storage() = default;

  // In the place of what was there, if anything.
  virtual void write(const std::string& name, std::string_view bytes) = 0;
  // The same with a local file, as long as it is when it is opened.
  virtual Contents upload(const std::filesystem::path& file, const std::string& name) = 0;

  // Empty where there is none.
  virtual std::optional<std::string> read(const std::string& name) = 0;
  // Into a local file that is made or replaced. A file that is not there is a fault.
  virtual Contents download(const std::string& name, const std::filesystem::path& file) = 0;

  // Empty where there is none.
  virtual std::optional<StoredFile> find(const std::string& name) = 0;
  // All files below a folder, however deep; names from the root on. None where there is no such folder.
  virtual std::vector<StoredFile> list(const std::string& folder) = 0;

  // Nothing happens where there is none.
  virtual void remove(const std::string& name) = 0;
  // A folder with all files below it.
  virtual void remove_folder(const std::string& folder) = 0;

  // ---- Several writers of one file. Each file is written by these functions, or by those above, and not by both.

  // Returns whether looking and writing are one step in write_if() and upload_if(). Else somebody may write in between.
  virtual bool has_conditional_writes() { return false; }
  // Returns what is there now, of one moment; empty where there is none.
  virtual std::optional<VersionedBytes> read_versioned(const std::string& name);
  virtual std::optional<Version> version_of(const std::string& name);
  // Writes where the file still has the version `expected`, empty: where there is none. Returns its new version, or
  // nothing where it has another one: then nothing was written now. A fault, and an attempt that is repeated on the
  // way, leave open whether something was written: what is there then tells.
  virtual std::optional<Version> write_if(const std::string& name, std::string_view bytes,
                                          const std::optional<Version>& expected);
  // The same with a local file, as long as it is when it is opened.
  virtual std::optional<Version> upload_if(const std::filesystem::path& file, const std::string& name,
                                           const std::optional<Version>& expected);
};

// The storage whose root is at a URI. Nothing is written, and whether it can be reached is not known yet. Throws
// InvalidArgument for a scheme that is not known, and for one whose library is not there.
std::unique_ptr<Storage> open_storage(const Uri& uri);

}  // namespace cadre::storage
