#include "data/json_depth.h"

#include <fmt/format.h>

namespace cadre::data {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

}  // namespace

arrow::Status JsonDepth::add(std::string_view text) {
  for (const char c : text) {
    if (c == '\n') ++line_;
    if (c == '\n' || c == '\r') in_string_ = false;  // no JSON string contains either, and both end a line for Arrow
    if (in_string_) {
      if (c == '"' && !escaped_) in_string_ = false;
      escaped_ = c == '\\' && !escaped_;
      continue;
    }
    escaped_ = false;
    if (depth_ == 0 && c != '{' && !is_space(c))
      return arrow::Status::Invalid(fmt::format("JSON parse error: line {} is no JSON object", line_));
    if (c == '"') {
      in_string_ = true;
    } else if (c == '[' || c == '{') {
      if (++depth_ > kMost)
        return arrow::Status::Invalid(
            fmt::format("the values of line {} are nested more than {} levels deep", line_, kMost));
    } else if (c == ']' || c == '}') {
      --depth_;
    }
  }
  return arrow::Status::OK();
}

arrow::Result<std::int64_t> LimitedDepthStream::Read(std::int64_t bytes, void* out) {
  ARROW_ASSIGN_OR_RAISE(const std::int64_t count, text_->Read(bytes, out));
  ARROW_RETURN_NOT_OK(depth_.add({static_cast<const char*>(out), static_cast<std::size_t>(count)}));
  return count;
}

arrow::Result<std::shared_ptr<arrow::Buffer>> LimitedDepthStream::Read(std::int64_t bytes) {
  ARROW_ASSIGN_OR_RAISE(auto buffer, text_->Read(bytes));
  ARROW_RETURN_NOT_OK(depth_.add(std::string_view(*buffer)));
  return buffer;
}

}  // namespace cadre::data
