#include "data/arrow_status.h"

#include <arrow/util/io_util.h>

#include <cerrno>

namespace cadre::data {

void check(const arrow::Status& status, const std::string& doing) {
  if (status.ok()) return;
  std::string text = doing + ": " + status.message();
  if (text.find("compressed stream") != text.npos || text.find("inflate failed") != text.npos)
    text += ": the file is damaged or ends early; write it again, or leave it out";
  const int system_error = arrow::internal::ErrnoFromStatus(status);
  if (system_error == ENOSPC || system_error == EDQUOT) throw OutOfSpace(text);
  if (system_error == ENOENT) throw NotFound(text);
  switch (status.code()) {
    case arrow::StatusCode::KeyError:
    case arrow::StatusCode::TypeError:
    case arrow::StatusCode::NotImplemented:
      throw InvalidArgument(text);
    default:
      throw StorageError(text);
  }
}

}  // namespace cadre::data
