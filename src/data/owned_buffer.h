// Bytes of somebody else as a buffer of Arrow's.
#pragma once

#include <arrow/buffer.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace cadre::data {

// Keeps the owner as long as it is used itself.
class OwnedBuffer final : public arrow::Buffer {
 public:
  OwnedBuffer(std::shared_ptr<const void> owner, std::span<const std::byte> bytes)
      : arrow::Buffer(reinterpret_cast<const std::uint8_t*>(bytes.data()), std::ssize(bytes)),
        owner_(std::move(owner)) {}

 private:
  std::shared_ptr<const void> owner_;
};

}  // namespace cadre::data
