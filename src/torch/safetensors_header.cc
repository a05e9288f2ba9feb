#include "torch/safetensors_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "base/json.h"
#include "cadre/error.h"
#include "cadre/value.h"

namespace cadre::pt {
namespace {

static_assert(std::endian::native == std::endian::little, "such files are little-endian");

constexpr const char* kMetadata = "__metadata__";
constexpr std::size_t kLengthBytes = kSafetensorsLengthBytes;
constexpr std::size_t kAlignment = 64;
constexpr std::size_t kLargestHeader = 100'000'000;  // the limit of other readers

constexpr std::array<std::pair<std::string_view, std::size_t>, 17> kElementBytes{{{"BOOL", 1},
                                                                                  {"U8", 1},
                                                                                  {"I8", 1},
                                                                                  {"F8_E4M3", 1},
                                                                                  {"F8_E5M2", 1},
                                                                                  {"U16", 2},
                                                                                  {"I16", 2},
                                                                                  {"F16", 2},
                                                                                  {"BF16", 2},
                                                                                  {"U32", 4},
                                                                                  {"I32", 4},
                                                                                  {"F32", 4},
                                                                                  {"U64", 8},
                                                                                  {"I64", 8},
                                                                                  {"F64", 8},
                                                                                  {"C64", 8},
                                                                                  {"F8_E8M0", 1}}};

// Returns the size of all elements in bytes; empty if it overflows.
std::optional<std::size_t> size_of(const std::vector<std::int64_t>& shape, std::size_t element) {
  std::size_t size = element;
  bool overflows = false;
  for (const std::int64_t extent : shape) overflows |= __builtin_mul_overflow(size, extent, &size);
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  return overflows ? std::nullopt : std::optional(size);
}

StoredTensor to_tensor(const std::string& name, const cadre::Value& value, std::size_t header_bytes,
                       Alignment alignment) {
  const Config entry(value);
  StoredTensor tensor{name, entry.get<std::string>("dtype"), entry.get<std::vector<std::int64_t>>("shape")};
  const auto offsets = entry.get<std::vector<std::uint64_t>>("data_offsets");
  const std::size_t element = element_bytes(tensor.dtype);
  if (element == 0) throw InvalidArgument("the type \"" + tensor.dtype + "\" of its elements is unknown");
  if (std::ranges::any_of(tensor.shape, [](std::int64_t extent) { return extent < 0; }))
    throw InvalidArgument("its shape has a negative extent");
  if (offsets.size() != 2 || offsets[0] > offsets[1]) throw InvalidArgument("its offsets are no range");
  tensor.offset = offsets[0];
  tensor.size_bytes = offsets[1] - offsets[0];
  if (size_of(tensor.shape, element) != tensor.size_bytes)
    throw InvalidArgument("it has " + std::to_string(tensor.size_bytes) + " bytes, which is not what its shape needs");
  if (alignment == Alignment::needed && (header_bytes + tensor.offset) % element != 0)
    throw InvalidArgument("its elements are not aligned");
  return tensor;
}

[[noreturn]] void refuse(const std::string& source, const std::string& why) {
  throw StorageError("cannot read " + source + ": " + why);
}

// Checks that every byte of the data belongs to exactly one tensor.
void check_places(std::vector<StoredTensor> tensors, std::size_t data_bytes, const std::string& source) {
  std::ranges::sort(tensors, {},
                    [](const StoredTensor& tensor) { return std::pair(tensor.offset, tensor.size_bytes); });
  std::size_t end = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.offset != end)
      refuse(source, "the tensor \"" + tensor.name + "\" begins at byte " + std::to_string(tensor.offset) +
                         " of the data instead of " + std::to_string(end));
    end += tensor.size_bytes;
  }
  if (end != data_bytes)
    refuse(source, "its tensors have " + std::to_string(end) + " bytes, and there are " + std::to_string(data_bytes));
}

}  // namespace

std::size_t element_bytes(std::string_view dtype) {
  const auto found = std::ranges::find(kElementBytes, dtype, &std::pair<std::string_view, std::size_t>::first);
  return found == kElementBytes.end() ? 0 : found->second;
}

std::string make_safetensors_header(std::vector<StoredTensor>& tensors, const Dict& metadata) {
  std::ranges::stable_sort(tensors, std::ranges::greater(),
                           [](const StoredTensor& tensor) { return element_bytes(tensor.dtype); });
  std::size_t offset = 0;
  Dict entries;
  if (!metadata.empty()) entries.emplace_back(kMetadata, metadata);
  for (StoredTensor& tensor : tensors) {
    if (tensor.name == kMetadata) throw InvalidArgument("a tensor must not be named " + tensor.name);
    tensor.offset = offset;
    offset += tensor.size_bytes;
    List shape(tensor.shape.begin(), tensor.shape.end());
    entries.emplace_back(
        tensor.name,
        Dict{{"dtype", tensor.dtype}, {"shape", std::move(shape)}, {"data_offsets", list(tensor.offset, offset)}});
  }
  std::string json = base::to_json(entries);
  if (json.size() > kLargestHeader - kAlignment)
    throw InvalidArgument("the names and shapes of so many tensors are more than a safetensors file may have");
  json.resize((kLengthBytes + json.size() + kAlignment - 1) / kAlignment * kAlignment - kLengthBytes, ' ');
  const std::uint64_t length = json.size();
  std::string header(kLengthBytes, '\0');
  std::memcpy(header.data(), &length, kLengthBytes);
  return header + json;
}

std::size_t safetensors_json_bytes(std::span<const std::byte> file_begin, std::uint64_t file_bytes,
                                   const std::string& source) {
  std::uint64_t length = 0;
  if (file_begin.size() >= kLengthBytes) std::memcpy(&length, file_begin.data(), kLengthBytes);
  if (length == 0 || length > kLargestHeader || file_bytes < kLengthBytes || length > file_bytes - kLengthBytes)
    refuse(source, "it is no safetensors file, or is cut");
  return static_cast<std::size_t>(length);
}

SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t file_bytes, Alignment alignment,
                                           const std::string& source) {
  SafetensorsHeader header{.size_bytes = kLengthBytes + json.size()};
  const cadre::Value content = base::parse_json(json, source);
  if (!content.is_dict()) refuse(source, "its header is no dictionary");
  std::set<std::string_view> names;
  for (const auto& [name, entry] : content.dict()) {
    const std::string tensor = "the tensor \"" + name + "\"";
    if (!names.insert(name).second) refuse(source, tensor + " is there twice");
    if (name == kMetadata) continue;
    try {
      header.tensors.push_back(to_tensor(name, entry, header.size_bytes, alignment));
    } catch (const Error& error) {
      refuse(source, tensor + ": " + error.what());
    }
  }
  check_places(header.tensors, file_bytes - header.size_bytes, source);
  return header;
}

SafetensorsHeader read_safetensors_header(std::span<const std::byte> file, const std::string& source) {
  const std::size_t length = safetensors_json_bytes(file, file.size(), source);
  const std::string_view json(reinterpret_cast<const char*>(file.data()) + kLengthBytes, length);
  return parse_safetensors_header(json, file.size(), Alignment::needed, source);
}

}  // namespace cadre::pt
