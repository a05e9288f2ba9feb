// Rejection of JSON text that crashes Arrow's parser, which recurses for each level of nesting and crashes on some
// values outside objects.
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

// Checks a text piece by piece.
class JsonDepth {
 public:
  static constexpr std::int64_t kMost = 100;  // limit of nested lists and objects

  // Returns Invalid, with the line, if values are nested more deeply than kMost or a value is in no object.
  arrow::Status add(std::string_view text);

 private:
  std::int64_t depth_ = 0;
  std::int64_t line_ = 1;
  bool in_string_ = false;
  bool escaped_ = false;
};

// A stream that passes on another one; reads fail if JsonDepth rejects the text.
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
