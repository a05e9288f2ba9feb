/// \file
/// Errors of Cadre. Every message says what happened, to what (trial, path, key), and what to do about it.
#pragma once

#include <stdexcept>
#include <string>

namespace cadre {

/// Base of all exceptions that Cadre throws on purpose. Thrown itself where none of the others fits.
class Error : public std::runtime_error {
 public:
  /// With what what() says: a sentence for a person.
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

/// A call was given something that it cannot work with. Nothing was started or changed.
class InvalidArgument : public Error {
 public:
  using Error::Error;  ///< see Error
};

/// Something that was asked for by name (a key, a file, a trainable, a checkpoint) does not exist.
class NotFound : public Error {
 public:
  using Error::Error;  ///< see Error
};

/// A file, a directory or the experiment store could not be read or written, or is damaged.
class StorageError : public Error {
 public:
  using Error::Error;  ///< see Error
};

/// A StorageError because the disk, or the user's share of it, is full: it goes away when somebody makes space.
class OutOfSpace : public StorageError {
 public:
  using StorageError::StorageError;  ///< see Error
};

/// A person or the system asked the program to end (Ctrl-C, SIGTERM, SIGHUP). Everything that was reported is saved.
class Interrupted : public Error {
 public:
  using Error::Error;  ///< see Error
};

/// The processes that run user code could not be started, or are gone.
class EngineError : public Error {
 public:
  using Error::Error;  ///< see Error
};

}  // namespace cadre
