// Refuses JSON text that Arrow's parser does not survive: it calls itself for every level of nesting, and crashes on
// some values that are in no object.
#pragma once

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/result.h>
#include <arrow/status.h>

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

namespace cadre::data {

// Follows a text piece by piece.
class JsonDepth {
 public:
  static constexpr std::int64_t kMost = 100;  // lists and objects inside each other

  // Invalid, with the line, where values are nested more deeply than kMost, and where one is in no object.
  arrow::Status add(std::string_view text);

 private:
  std::int64_t depth_ = 0;
  std::int64_t line_ = 1;
  bool in_string_ = false;
  bool escaped_ = false;
};

// Another stream whose reads fail where the text is refused.
class LimitedDepthStream final : public arrow::io::InputStream {
 public:
  explicit LimitedDepthStream(std::shared_ptr<arrow::io::InputStream> text) : text_(std::move(text)) {}

  arrow::Status Close() override { return text_->Close(); }
  bool closed() const override { return text_->closed(); }
  arrow::Result<std::int64_t> Tell() const override { return text_->Tell(); }
  arrow::Result<std::int64_t> Read(std::int64_t bytes, void* out) override;
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(std::int64_t bytes) override;

 private:
  std::shared_ptr<arrow::io::InputStream> text_;
  JsonDepth depth_;
};

}  // namespace cadre::data
