/// \file
/// Checkpoints: directories with a model's state, each of which belongs to one report.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <utility>

#include "cadre/value.h"

namespace cadre {

/// A directory to fill and report, made by tune::make_checkpoint_directory or train::make_checkpoint_directory on the
/// storage's own file system, so that it is moved and not copied. Has one owner; removed with its content if it is
/// destroyed without having been reported.
class CheckpointDirectory {
 public:
  /// Takes ownership of a directory that exists.
  explicit CheckpointDirectory(std::filesystem::path path) : path_(std::move(path)) {}
  /// Takes over the directory of `other`, which is empty afterwards.
  CheckpointDirectory(CheckpointDirectory&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  /// Exchanges the two directories.
  CheckpointDirectory& operator=(CheckpointDirectory&& other) noexcept;
  /// Removes the directory with its content, unless release() was called. Does not throw: a directory that cannot be
  /// removed is removed when the experiment is opened again.
  ~CheckpointDirectory();

  /// Returns the directory's path; empty after release().
  const std::filesystem::path& path() const { return path_; }
  /// Gives up ownership without removing the directory and returns its path; path() is empty afterwards.
  std::filesystem::path release() { return std::exchange(path_, {}); }

 private:
  std::filesystem::path path_;
};

/// A checkpoint, referred to by its directory. A value: copying it copies the path, not the files.
class Checkpoint {
 public:
  /// Makes a checkpoint of a user's directory: it is copied when it is reported, and remains unchanged. The directory
  /// is not checked before that. If Cadre has published its files to another directory and keeps only their list, this
  /// is a checkpoint of that directory.
  static Checkpoint from_directory(std::filesystem::path directory);
  /// Makes a checkpoint of a directory that Cadre made: it is moved when it is reported. Until then it is removed with
  /// the last copy of this checkpoint.
  static Checkpoint from_directory(CheckpointDirectory&& directory);
  /// Makes the checkpoint that a config names; config.get<Checkpoint>("from") calls it. Throws InvalidArgument if the
  /// reference is to something else.
  static Checkpoint from_reference(const Reference& reference);

  /// Read access to the files. Committed checkpoints never change; Cadre does not delete the checkpoint that a running
  /// trial was started from.
  class Reading {
   public:
    /// Reads a directory that exists.
    explicit Reading(std::filesystem::path path) : path_(std::move(path)) {}
    /// Reads a downloaded directory, which is removed with the last copy of this object.
    explicit Reading(CheckpointDirectory&& downloaded)
        : path_(downloaded.path()), downloaded_(std::make_shared<CheckpointDirectory>(std::move(downloaded))) {}
    /// Returns the directory of the files.
    const std::filesystem::path& path() const { return path_; }

   private:
    std::filesystem::path path_;
    std::shared_ptr<CheckpointDirectory> downloaded_ = {};
  };
  /// Returns access to the files in place; nothing is copied. If they are in an object storage only, they are
  /// downloaded into a temporary directory, without a time limit; throws StorageError if the storage does not answer
  /// for minutes or a file differs from the one that was written. In a rank of a training run on a node that does not
  /// see the run's directory, a checkpoint of the run that is not there is sent to the node first; throws StorageError
  /// if the run does not keep it any more.
  Reading as_directory() const;

  /// Copies the files into `target`, which is made if it does not exist; files of the same names are replaced. Throws
  /// StorageError, and the errors of as_directory(); some files may have been copied then.
  void to_directory(const std::filesystem::path& target) const;

  /// Returns the directory's path. That of a checkpoint in an object storage, or of a run whose directory this node
  /// does not see, may lack its files: use as_directory().
  const std::filesystem::path& path() const { return path_; }

 private:
  friend class CheckpointAccess;
  Checkpoint(std::filesystem::path path, std::shared_ptr<CheckpointDirectory> owned)
      : path_(std::move(path)), owned_(std::move(owned)) {}

  std::filesystem::path path_;
  std::shared_ptr<CheckpointDirectory> owned_;  // set while this is a directory of Cadre's that has not been reported
};

/// Converts a checkpoint to a value of a config, which carries the directory's absolute path: {"from", checkpoint} in a
/// config is config.get<Checkpoint>("from") in the workers. It must be there when a Tuner or Trainer is made, and as
/// long as trials may begin; on a cluster, where the workers' nodes see it, or in an object storage.
Reference to_reference(const Checkpoint& checkpoint);

/// A function that fills a directory, which is empty, with a checkpoint's files.
using CheckpointWriter = std::function<void(const std::filesystem::path& directory)>;

}  // namespace cadre
