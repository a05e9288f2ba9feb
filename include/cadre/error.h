/// \file
/// Exceptions of Cadre. Every message names the problem, the trial, path or key that it concerns, and a remedy.
#pragma once

#include <stdexcept>
#include <string>

namespace cadre {

/// Base class of all exceptions that Cadre throws on purpose. An Error itself is thrown if no derived class fits.
class Error : public std::runtime_error {
 public:
  /// Makes an error with the message that what() returns.
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

/// Invalid arguments of a call. Nothing was started or changed.
class InvalidArgument : public Error {
 public:
  using Error::Error;  ///< see Error
};

/// A named object (a key, a file, a trainable, a checkpoint) does not exist.
class NotFound : public Error {
 public:
  using Error::Error;  ///< see Error
};

/// A file, a directory or the experiment store could not be read or written, or is damaged.
class StorageError : public Error {
 public:
  using Error::Error;  ///< see Error
};

/// A StorageError because the disk, or the user's quota on it, is full. Freeing space resolves it.
class OutOfSpace : public StorageError {
 public:
  using StorageError::StorageError;  ///< see Error
};

/// A request from a person or the system to end the program (Ctrl-C, SIGTERM, SIGHUP). Everything that was reported is
/// saved.
class Interrupted : public Error {
 public:
  using Error::Error;  ///< see Error
};

/// Processes that run user code could not be started, or have ended.
class EngineError : public Error {
 public:
  using Error::Error;  ///< see Error
};

}  // namespace cadre
