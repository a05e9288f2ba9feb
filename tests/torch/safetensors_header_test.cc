#include "torch/safetensors_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "cadre/error.h"

namespace cadre::pt {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

// Returns a file with this header and `data_bytes` bytes of data.
std::string file_with(const std::string& json, std::size_t data_bytes) {
  std::string file(sizeof(std::uint64_t), '\0');
  const std::uint64_t length = json.size();
  std::memcpy(file.data(), &length, sizeof length);
  return file + json + std::string(data_bytes, 'x');
}

std::string fault_of(const std::string& file) {
  try {
    read_safetensors_header(bytes_of(file), "the file");
  } catch (const StorageError& error) {
    return error.what();
  }
  return "";
}

TEST(SafetensorsHeader, WhatIsWrittenIsReadAndEveryTensorIsAligned) {
  std::vector<StoredTensor> tensors{{"mask", "BOOL", {3}, 0, 3},  {"half", "F16", {1, 5}, 0, 10},
                                    {"scalar", "F64", {}, 0, 8},  {"none", "F32", {0, 7}, 0, 0},
                                    {"weight", "F32", {2}, 0, 8}, {"a \"name\"\n\u00e9", "U8", {1}, 0, 1}};
  const std::string header = make_safetensors_header(tensors);
  EXPECT_EQ(header.size() % 64, 0u);
  const std::string file = header + std::string(30, 'x');
  const SafetensorsHeader read = read_safetensors_header(bytes_of(file), "the file");
  EXPECT_EQ(read.tensors, tensors);
  EXPECT_EQ(read.size_bytes, header.size());
  for (const StoredTensor& tensor : read.tensors)
    EXPECT_EQ((read.size_bytes + tensor.offset) % element_bytes(tensor.dtype), 0u) << tensor.name;
}

TEST(SafetensorsHeader, AFileWithoutTensorsIsRead) {
  std::vector<StoredTensor> none;
  EXPECT_THAT(read_safetensors_header(bytes_of(make_safetensors_header(none)), "it").tensors, IsEmpty());
}

TEST(SafetensorsHeader, MetadataIsNoTensor) {
  const std::string file =
      file_with(R"({"__metadata__":{"format":"pt"},"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})", 2);
  EXPECT_EQ(read_safetensors_header(bytes_of(file), "it").tensors.size(), 1u);
  std::vector<StoredTensor> named_so{{"__metadata__", "U8", {1}, 0, 1}};
  EXPECT_THROW(make_safetensors_header(named_so), InvalidArgument);
}

TEST(SafetensorsHeader, WhatIsCutOrNoSuchFileIsRefused) {
  std::vector<StoredTensor> tensors{{"a", "F32", {4}, 0, 16}};
  const std::string file = make_safetensors_header(tensors) + std::string(16, 'x');
  EXPECT_EQ(fault_of(file), "");
  for (std::size_t size = 0; size < file.size(); ++size) EXPECT_NE(fault_of(file.substr(0, size)), "") << size;
  EXPECT_NE(fault_of(file + "x"), "") << "one byte belongs to no tensor";
  EXPECT_THAT(fault_of(std::string(64, '\xff')), HasSubstr("no safetensors file"));
  EXPECT_THAT(fault_of(file_with("[]", 0)), HasSubstr("no dictionary"));
}

TEST(SafetensorsHeader, TensorsThatAreNotWhatTheyMustBeAreNamed) {
  const auto with = [](const std::string& fields, std::size_t data_bytes) {
    return fault_of(file_with(R"({"the tensor":{)" + fields + "}}", data_bytes));
  };
  EXPECT_THAT(with(R"("dtype":"U8","shape":[2],"data_offsets":[0,2])", 2), IsEmpty());
  for (const std::string fields : {
           R"("dtype":"X8","shape":[2],"data_offsets":[0,2])",
           R"("dtype":"U8","shape":[3],"data_offsets":[0,2])",
           R"("dtype":"U8","shape":[-2],"data_offsets":[0,2])",
           R"("dtype":"U8","shape":[-1,-2],"data_offsets":[0,2])",
           R"("dtype":"U8","shape":[9223372036854775807,4],"data_offsets":[0,2])",
           R"("dtype":"U8","shape":[2],"data_offsets":[2,0])",
           R"("dtype":"U8","shape":[2],"data_offsets":[0])",
           R"("dtype":"U8","shape":[2],"data_offsets":[-1,1])",
           R"("dtype":"U8","shape":[2],"data_offsets":[1,3])",
           R"("dtype":"U8","shape":[2.5],"data_offsets":[0,2])",
           R"("shape":[2],"data_offsets":[0,2])",
       })
    EXPECT_THAT(with(fields, 2), HasSubstr("\"the tensor\"")) << fields;
  EXPECT_THAT(fault_of(file_with(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
                                     "b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                                 3)),
              HasSubstr("\"b\""))
      << "they overlap";
  EXPECT_THAT(fault_of(file_with(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                                     "a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                                 2)),
              HasSubstr("twice"));
  const std::string odd = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  EXPECT_THAT(fault_of(file_with(odd + std::string(1 + 4 - (odd.size() % 4), ' '), 4)), HasSubstr("not aligned"));
}

}  // namespace
}  // namespace cadre::pt
