/// \file
/// Checkpoints: directories with a model's state that belong to one report.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <utility>

#include "cadre/value.h"

namespace cadre {

/// A directory to fill and report, made by tune::make_checkpoint_directory on the storage's own file system, so that it
/// is moved and not copied. One owner; removed with its content when it is destroyed without having been reported.
class CheckpointDirectory {
 public:
  /// Takes over a directory that exists.
  explicit CheckpointDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  /// The other one is empty afterwards.
  CheckpointDirectory(CheckpointDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  /// Exchanges the two directories.
  CheckpointDirectory& operator=(CheckpointDirectory&& other) noexcept;
  /// Removes the directory with its content, if it has not been given up. Does not throw: what cannot be removed is
  /// removed when the experiment is opened again.
  ~CheckpointDirectory();

  /// Where the directory is; empty when it has been given up.
  const std::filesystem::path& path() const { return path_; }
  /// Gives the directory up without removing it; path() is empty afterwards.
  std::filesystem::path release() { return std::exchange(path_, {}); }

 private:
  std::filesystem::path path_;
};

/// Names a checkpoint's directory. A value: copying it copies the name.
class Checkpoint {
 public:
  /// A directory of the user's: it is copied when it is reported and stays as it is. Nothing is looked at before.
  static Checkpoint from_directory(std::filesystem::path directory);
  /// A directory of Cadre's: it is moved when it is reported. Until then it is removed with the last copy of this
  /// checkpoint.
  static Checkpoint from_directory(CheckpointDirectory&& directory);

  /// Read access to the files. Committed checkpoints never change; Cadre does not delete the one that a running trial
  /// was started from.
  class Reading {
   public:
    /// Of a directory that exists.
    explicit Reading(std::filesystem::path path) : path_(std::move(path)) {}
    /// Of one that was downloaded, and is removed with the last copy of this.
    explicit Reading(CheckpointDirectory&& downloaded)
        : path_(downloaded.path()), downloaded_(std::make_shared<CheckpointDirectory>(std::move(downloaded))) {}
    /// Where the files are.
    const std::filesystem::path& path() const { return path_; }

   private:
    std::filesystem::path path_;
    std::shared_ptr<CheckpointDirectory> downloaded_ = {};
  };
  /// Access to the files where they are; nothing is copied. The files of a checkpoint that is published, and no longer
  /// on the local disk, are downloaded into a directory for temporary files, which takes as long as it takes; throws
  /// StorageError then, when the storage does not answer for minutes or a file is not as it was written.
  Reading as_directory() const;

  /// Copies the files into `target`, which is made if it does not exist; files of the same names are replaced. Throws
  /// StorageError, and what as_directory() does; some of the files may be there then.
  void to_directory(const std::filesystem::path& target) const;

  /// The directory. That of a published checkpoint may lack its files: as_directory() has them.
  const std::filesystem::path& path() const { return path_; }

 private:
  friend class CheckpointAccess;
  Checkpoint(std::filesystem::path path, std::shared_ptr<CheckpointDirectory> owned)
      : path_(std::move(path)), owned_(std::move(owned)) {}

  std::filesystem::path path_;
  std::shared_ptr<CheckpointDirectory> owned_;  // set while it is a directory of Cadre's that was not reported yet
};

/// A checkpoint may be a value of a config: the worker that reads it gets the directory's path.
Reference to_reference(const Checkpoint& checkpoint);

/// Fills a directory, which is empty, with a checkpoint's files.
using CheckpointWriter = std::function<void(const std::filesystem::path& directory)>;

}  // namespace cadre
