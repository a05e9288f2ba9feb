// An Arrow buffer over bytes that another object owns.
#pragma once

#include <arrow/buffer.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace cadre::data {

// Keeps the owner alive as long as the buffer exists.
class OwnedBuffer final : public arrow::Buffer {
 public:
  OwnedBuffer(std::shared_ptr<const void> owner, std::span<const std::byte> bytes)
      : arrow::Buffer(reinterpret_cast<const std::uint8_t*>(bytes.data()), std::ssize(bytes)),
        owner_(std::move(owner)) {}

 private:
  std::shared_ptr<const void> owner_;
};

}  // namespace cadre::data
