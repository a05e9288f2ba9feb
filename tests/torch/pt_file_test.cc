// Damaged files of torch.save, and pickles that torch.save never writes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <random>
#include <string>

#include "cadre/error.h"
#include "cadre/torch.h"
#include "small_net.h"
#include "support/temporary_directory.h"
#include "torch/pickler.h"
#include "torch/pt_file.h"
#include "torch/unpickler.h"

namespace {

using cadre::test_support::content_of;
using cadre::test_support::TemporaryDirectory;
using cadre::test_support::write_bytes;

using namespace std::string_literals;
using cadre::pt::Value;
using testing::AllOf;
using testing::HasSubstr;

std::string read_error(const std::filesystem::path& file) {
  try {
    cadre::pt::read_file(file);
  } catch (const cadre::StorageError& error) {
    return error.what();
  }
  return "no error";
}

class PtFileTest : public testing::Test {
 protected:
  PtFileTest() {
    torch::manual_seed(1);
    torch::optim::Adam optimizer(model_->parameters(), torch::optim::AdamOptions(0.01));
    train_step(model_, optimizer);
    cadre::save_state(file_, model_, optimizer, 1);
    bytes_ = content_of(file_);
  }

  // Loads a changed file into a fresh model. Returns true if that throws a StorageError or InvalidArgument that names
  // the file; otherwise expects the values that were saved.
  bool is_refused(const std::string& bytes) {
    write_bytes(damaged_, bytes);
    SmallNet loaded;
    torch::optim::Adam optimizer(loaded->parameters(), torch::optim::AdamOptions(0.5));
    try {
      cadre::load_state(damaged_, loaded, optimizer);
    } catch (const cadre::Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(damaged_.string()));
      return true;
    }
    EXPECT_TRUE(equal_values(values_of(model_), values_of(loaded)));
    EXPECT_EQ(optimizer.param_groups()[0].options().get_lr(), 0.01);
    return false;
  }

  TemporaryDirectory directory_;
  const std::filesystem::path file_ = directory_ / "whole.pt";
  const std::filesystem::path damaged_ = directory_ / "damaged.pt";
  SmallNet model_;
  std::string bytes_;
};

TEST_F(PtFileTest, undamaged_file_is_read) { EXPECT_FALSE(is_refused(bytes_)); }

TEST_F(PtFileTest, file_cut_at_any_length_is_refused) {
  for (std::size_t size = 0; size < bytes_.size(); size += size < 100 || size + 1000 > bytes_.size() ? 1 : 37) {
    EXPECT_TRUE(is_refused(bytes_.substr(0, size))) << "cut to " << size << " of " << bytes_.size();
  }
}

TEST_F(PtFileTest, flipped_bits_are_refused_or_without_effect) {
  std::mt19937 random(1);  // NOLINT: the same bits in every run
  int refused = 0;
  constexpr int tries = 3000;
  for (int i = 0; i < tries; ++i) {
    std::string damaged = bytes_;
    damaged[random() % damaged.size()] ^= static_cast<char>(1 << (random() % 8));
    if (is_refused(damaged)) ++refused;
  }
  EXPECT_GT(refused, tries / 3);  // the rest hit padding and unused fields
}

TEST_F(PtFileTest, flipped_bit_in_a_weight_is_found_by_its_checksum) {
  const torch::Tensor weight = model_->fc->weight.detach().contiguous();
  const auto position = bytes_.find(std::string(static_cast<const char*>(weight.data_ptr()), 64));
  ASSERT_NE(position, std::string::npos);
  bytes_[position] ^= 1;
  write_bytes(damaged_, bytes_);
  EXPECT_THAT(read_error(damaged_), AllOf(HasSubstr("checksum of record \"data/"), HasSubstr("offset")));
}

TEST_F(PtFileTest, overwritten_blocks_are_refused_or_without_effect) {
  std::mt19937 random(2);  // NOLINT: the same blocks in every run
  for (int i = 0; i < 300; ++i) {
    std::string damaged = bytes_;
    const std::size_t begin = random() % damaged.size();
    const std::size_t size = std::min<std::size_t>(random() % 64, damaged.size() - begin);
    for (std::size_t k = begin; k < begin + size; ++k) damaged[k] = static_cast<char>(random());
    is_refused(damaged);
  }
}

// The directory of a zip archive has each record's offset: a record that overlaps another one would read the same bytes
// twice.
TEST_F(PtFileTest, records_that_overlap_are_refused) {
  constexpr std::string_view entry_signature = "PK\1\2";
  constexpr std::size_t offset_field = 42;
  std::vector<std::size_t> entries;
  for (std::size_t at = bytes_.find(entry_signature); at != bytes_.npos; at = bytes_.find(entry_signature, at + 1))
    entries.push_back(at);
  ASSERT_GT(entries.size(), 3u);
  for (std::size_t i = 1; i < entries.size(); ++i) {
    std::string bytes = bytes_;
    bytes.replace(entries[i] + offset_field, 4, bytes_.substr(entries[i - 1] + offset_field, 4));
    write_bytes(damaged_, bytes);
    EXPECT_THAT(read_error(damaged_), HasSubstr("reaches into what follows it")) << "record " << i;
  }
}

// An archive larger than 4 GiB, or one that claims to be, has two end records; the longer one precedes the other.
TEST_F(PtFileTest, end_of_a_large_archive_lies_before_what_says_where) {
  const auto number = [](std::uint64_t value, int size) {
    std::string bytes;
    for (int i = 0; i < size; ++i) bytes += static_cast<char>(value >> (8 * i));
    return bytes;
  };
  const auto number_at = [&](std::size_t at, int size) {
    std::uint64_t value = 0;
    for (int i = 0; i < size; ++i) value |= std::uint64_t{static_cast<unsigned char>(bytes_[at + i])} << (8 * i);
    return value;
  };
  const std::size_t end = bytes_.rfind("PK\5\6");
  ASSERT_NE(end, bytes_.npos);
  std::size_t records_end = bytes_.rfind("PK\6\6");
  if (records_end == bytes_.npos) records_end = end;
  const std::uint64_t count = number_at(end + 10, 2), size = number_at(end + 12, 4), offset = number_at(end + 16, 4);
  const std::string end64 = "PK\6\6" + number(44, 8) + number(45, 2) + number(45, 2) + number(0, 8) + number(count, 8) +
                            number(count, 8) + number(size, 8) + number(offset, 8);
  const auto archive = [&](const std::string& between, std::uint64_t end64_offset) {
    return bytes_.substr(0, records_end) + end64 + between + "PK\6\7" + number(0, 4) + number(end64_offset, 8) +
           number(1, 4) + "PK\5\6" + number(0, 4) + number(0xffff, 2) + number(0xffff, 2) + number(0xffffffff, 4) +
           number(0xffffffff, 4) + number(0, 2);
  };
  EXPECT_FALSE(is_refused(archive("", records_end)));
  for (const std::string& bytes : {archive("12345678", records_end), archive("", 0), archive("", ~std::uint64_t{0})}) {
    write_bytes(damaged_, bytes);
    EXPECT_THAT(read_error(damaged_), HasSubstr("lies elsewhere than before its locator"));
  }
}

TEST_F(PtFileTest, other_files_are_told_apart_from_damage) {
  write_bytes(damaged_, "this is no checkpoint, only a text of some length");
  EXPECT_THAT(read_error(damaged_), HasSubstr("no end of a zip archive"));
  write_bytes(damaged_, "");
  EXPECT_THAT(read_error(damaged_), HasSubstr("too short"));
  EXPECT_THAT(read_error(directory_ / "."), HasSubstr("no regular file"));
  torch::save(model_, (directory_ / "archive.pt").string());
  EXPECT_THAT(read_error(directory_ / "archive.pt"), HasSubstr("torch::load reads it"));
}

TEST_F(PtFileTest, every_type_of_tensor_keeps_its_bits_shape_and_strides) {
  for (const auto type : {torch::kFloat, torch::kDouble, torch::kHalf, torch::kBFloat16, torch::kLong, torch::kInt,
                          torch::kShort, torch::kChar, torch::kByte, torch::kBool, torch::kComplexFloat}) {
    SCOPED_TRACE(at::toString(type));
    const torch::Tensor whole = torch::arange(24).remainder(2).to(type).reshape({2, 3, 4});
    for (const torch::Tensor& tensor : {whole, whole.transpose(0, 2), whole.slice(1, 1), whole.select(2, 3),
                                        whole.new_empty({0, 3}), whole[0][0][0], whole.new_ones({1}).expand({5})}) {
      cadre::pt::write_file(damaged_, tensor);
      const Value read = cadre::pt::read_file(damaged_);
      ASSERT_NE(read.get_if<torch::Tensor>(), nullptr);
      const torch::Tensor& found = *read.get_if<torch::Tensor>();
      EXPECT_EQ(found.scalar_type(), type);
      EXPECT_EQ(found.strides(), tensor.strides());
      EXPECT_TRUE(torch::equal(found, tensor));
    }
  }
}

TEST_F(PtFileTest, tensors_that_share_memory_still_do) {
  const torch::Tensor whole = torch::zeros({4});
  cadre::pt::DictBuilder dict;
  dict.add("whole", whole);
  dict.add("part", whole.slice(0, 2));
  cadre::pt::write_file(damaged_, dict.take());
  const Value read = cadre::pt::read_file(damaged_);
  read.find("part")->get_if<torch::Tensor>()->fill_(1);
  EXPECT_TRUE(torch::equal(*read.find("whole")->get_if<torch::Tensor>(), torch::tensor({0.F, 0.F, 1.F, 1.F})));
}

TEST_F(PtFileTest, sparse_tensor_is_not_written) {
  EXPECT_THROW(cadre::pt::write_file(damaged_, torch::zeros({3}).to_sparse()), cadre::InvalidArgument);
}

class UnpicklerTest : public testing::Test {
 protected:
  static Value unpickle(const std::string& bytes) {
    return cadre::pt::unpickle(bytes, "test.pt", [](const std::string&, std::size_t size_bytes) {
      return torch::zeros({static_cast<std::int64_t>(size_bytes)}, torch::kUInt8).storage();
    });
  }
  static std::string error_of(const std::string& bytes) {
    try {
      unpickle(bytes);
    } catch (const cadre::StorageError& error) {
      return error.what();
    }
    return "no error";
  }
  // Returns a pickled _rebuild_tensor_v2 of a float storage of `numel` elements; the arguments are pickled.
  static std::string tensor(const std::string& numel, const std::string& offset, const std::string& sizes,
                            const std::string& strides) {
    return "\x80\x02"
           "ctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0"s +
           "0X\x03\0\0\0"s + "cpu" + numel + "tQ" + offset + sizes + strides + "\x89)tR.";
  }
};

TEST_F(UnpicklerTest, integers_of_all_widths) {
  EXPECT_EQ(*unpickle("\x80\x02K\xff."s).get_if<std::int64_t>(), 255);
  EXPECT_EQ(*unpickle("\x80\x02M\xff\xff."s).get_if<std::int64_t>(), 65535);
  EXPECT_EQ(*unpickle("\x80\x02J\xff\xff\xff\xff."s).get_if<std::int64_t>(), -1);
  EXPECT_EQ(*unpickle("\x80\x02\x8a\x00."s).get_if<std::int64_t>(), 0);
  EXPECT_EQ(*unpickle("\x80\x02\x8a\x01\x80."s).get_if<std::int64_t>(), -128);
  EXPECT_EQ(*unpickle("\x80\x02\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f."s).get_if<std::int64_t>(), INT64_MAX);
  EXPECT_THAT(error_of("\x80\x02\x8a\x09\0\0\0\0\0\0\0\0\1."s), HasSubstr("more than 64 bits"));
}

TEST_F(UnpicklerTest, names_outside_the_list_are_refused_by_name_and_never_called) {
  EXPECT_THAT(error_of("\x80\x02"
                       "cos\nsystem\nX\x02\0\0\0ls\x85R."s),
              AllOf(HasSubstr("\"os.system\" is refused"), HasSubstr("test.pt, data.pkl offset 2")));
  EXPECT_THAT(error_of("\x80\x04\x8c\x08"
                       "builtins\x8c\x04"
                       "eval\x93."s),
              HasSubstr("\"builtins.eval\" is refused"));
}

TEST_F(UnpicklerTest, operations_on_what_is_not_there_are_refused) {
  for (const std::string& bytes : {"."s,
                                   "\x80\x02."s,
                                   "}"s,
                                   "}s."s,
                                   "e."s,
                                   "u."s,
                                   "t."s,
                                   "a."s,
                                   "K\1K\2s."s,
                                   "K\1}."s,
                                   "(."s,
                                   "(K\1."s,
                                   "(}K\1u."s,
                                   "]K\1K\2e."s,
                                   "](a."s,
                                   "}(K\1u."s,
                                   "h\0."s,
                                   "j\0\0\0\0."s,
                                   "q\0."s,
                                   "\x94."s,
                                   "Q."s,
                                   "R."s,
                                   "b."s,
                                   "K\1K\2b."s,
                                   "K\1K\2R."s,
                                   "X\xff\xff\xff\xff."s,
                                   "\x8d\xff\xff\xff\xff\xff\xff\xff\xff."s,
                                   "cab"s,
                                   "K"s,
                                   "\x95\1."s,
                                   "\x80\xff."s,
                                   "\x80\x02K\1.K"s,
                                   "i"s,
                                   "o."s,
                                   "\x81."s,
                                   "P1\n."s,
                                   "\x93."s,
                                   "K\1K\2\x93."s,
                                   "K\1\x86."s,
                                   "(K\1\x86."s}) {
    EXPECT_THAT(error_of(bytes), HasSubstr("data.pkl offset")) << testing::PrintToString(bytes);
  }
}

TEST_F(UnpicklerTest, containers_that_would_contain_themselves_are_refused) {
  EXPECT_THAT(error_of("]q\0h\0a."s), HasSubstr("changes after it became part"));
  EXPECT_THAT(error_of("}q\0K\1h\0s."s), HasSubstr("changes after it became part"));
  EXPECT_THAT(error_of("]q\0]q\1h\0ah\0h\1a."s), HasSubstr("changes after it became part"));
}

TEST_F(UnpicklerTest, deep_nesting_is_refused) {
  EXPECT_EQ(error_of(std::string(60, ']') + std::string(59, 'a') + "."), "no error");
  EXPECT_THAT(error_of(std::string(100000, ']') + std::string(99999, 'a') + "."), HasSubstr("64 levels"));
  EXPECT_THAT(error_of(")" + std::string(100000, '\x85') + "."), HasSubstr("64 levels"));
}

TEST_F(UnpicklerTest, what_is_remembered_cannot_be_multiplied) {
  const std::string text = "X\0\0\1\0"s + std::string(65536, 'x');  // 64 KiB
  const auto often = [&](int times) {
    std::string bytes = text + "q\0]("s;
    for (int i = 0; i < times; ++i) bytes += "h\0"s;
    return bytes + "e\x86.";
  };
  EXPECT_EQ(error_of(often(60)), "no error");
  EXPECT_THAT(error_of(often(2000)), HasSubstr("no end of values"));
  std::string laughs = "]q\0K\1a"s;  // further lists, each ten times the one before
  for (char level = 1; level < 20; ++level) {
    laughs += "](";
    for (int i = 0; i < 10; ++i) laughs += "h"s + static_cast<char>(level - 1);
    laughs += "eq"s + level;
  }
  EXPECT_THAT(error_of(laughs + std::string(19, '\x86') + "."), HasSubstr("no end of values"));
}

TEST_F(UnpicklerTest, long_names_are_refused) {
  const std::string name(2000, 'x');
  EXPECT_THAT(error_of("\x80\x02"
                       "c" +
                       name + "\nname\n."),
              HasSubstr("more than 1000 bytes"));
  EXPECT_THAT(error_of("\x80\x02"
                       "ctorch\n" +
                       name + "\n."),
              HasSubstr("more than 1000 bytes"));
  EXPECT_THAT(error_of("\x80\x04X\xd0\7\0\0"s + name + "X\1\0\0\0a\x93."s), HasSubstr("more than 1000 bytes"));
  EXPECT_THAT(error_of("\x80\x02(X\7\0\0\0storagectorch\nFloatStorage\nX\xd0\7\0\0"s + name + "X\3\0\0\0cpuK\1tQ."s),
              HasSubstr("more than 1000 bytes"));
}

// Each byte must be 0 or 1: checking 8 MiB a hundred thousand times would take minutes.
TEST_F(UnpicklerTest, bools_of_a_storage_are_looked_at_once) {
  constexpr int references = 100'000;
  const torch::Tensor bools = torch::zeros({std::int64_t{8} << 20}, torch::kUInt8);
  std::string bytes = "\x80\x02(X\7\0\0\0storagectorch\nBoolStorage\nX\1\0\0\0kX\3\0\0\0cpuJ\0\0\x80\0tq\0]("s;
  for (int i = 0; i < references; ++i) bytes += "h\0Q"s;
  int loaded = 0;
  cadre::pt::unpickle(bytes + "e\x86.", "test.pt", [&](const std::string&, std::size_t size_bytes) {
    EXPECT_EQ(size_bytes, std::size_t{8} << 20);
    ++loaded;
    return bools.storage();
  });
  EXPECT_EQ(loaded, references);
  bools[5] = 2;
  try {
    cadre::pt::unpickle(bytes + "e\x86.", "test.pt", [&](const std::string&, std::size_t) { return bools.storage(); });
    ADD_FAILURE() << "a bool is 2";
  } catch (const cadre::StorageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("bool"));
  }
}

TEST_F(UnpicklerTest, tensors_must_lie_within_their_storage) {
  const std::string eight = "K\x08", zero = "K\x00"s, two_by_four = "K\x02K\x04\x86", four_one = "K\x04K\x01\x86";
  EXPECT_EQ(error_of(tensor(eight, zero, two_by_four, four_one)), "no error");
  EXPECT_THAT(error_of(tensor(eight, "K\x01", two_by_four, four_one)), HasSubstr("beyond its storage of 8 elements"));
  EXPECT_THAT(error_of(tensor(eight, zero, "K\x02K\x05\x86", four_one)), HasSubstr("beyond its storage"));
  EXPECT_THAT(error_of(tensor(eight, zero, two_by_four, "K\x05K\x01\x86")), HasSubstr("beyond its storage"));
  EXPECT_THAT(error_of(tensor(eight, zero, two_by_four, "K\x04\x85")), HasSubstr("as many strides"));
  EXPECT_THAT(error_of(tensor(eight, "J\xff\xff\xff\xff", two_by_four, four_one)), HasSubstr("not negative"));
  EXPECT_THAT(error_of(tensor(eight, zero, two_by_four, "K\x04J\xff\xff\xff\xff\x86")), HasSubstr("not negative"));
  EXPECT_THAT(error_of(tensor(eight, zero, "X\x01\0\0\0a\x85"s, "K\x01\x85")), HasSubstr("a size is expected"));
  const std::string huge = "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f";
  EXPECT_THAT(error_of(tensor(eight, zero, huge + huge + "\x86", four_one)), HasSubstr("impossible size"));
  EXPECT_THAT(error_of(tensor(eight, zero, two_by_four, huge + huge + "\x86")), HasSubstr("impossible strides"));
  EXPECT_THAT(error_of(tensor(eight, huge, two_by_four, four_one)), HasSubstr("beyond its storage"));
  const std::string quarter = "\x8a\x08\0\0\0\0\0\0\0\x40"s;  // 2^62: the last of three elements is 2^64 - 1
  EXPECT_THAT(error_of(tensor(eight, huge, "K\x03\x85", quarter + "\x85")), HasSubstr("impossible strides"));
  EXPECT_THAT(error_of(tensor(huge, zero, two_by_four, four_one)), HasSubstr("impossible size"));
}

TEST_F(UnpicklerTest, random_bytes_never_crash) {
  // Mostly valid opcodes, so that the streams are not refused at once.
  const std::string operations = "(.JKMNQRX]abceghjqrstu})\x80\x85\x86\x87\x88\x89\x8a\x8c\x93\x94\x95";
  std::mt19937 random(3);  // NOLINT: the same streams in every run
  for (int i = 0; i < 200000; ++i) {
    std::string bytes;
    for (std::size_t k = random() % 40; k > 0; --k) {
      bytes.push_back(random() % 4 == 0 ? static_cast<char>(random() % 4) : operations[random() % operations.size()]);
    }
    error_of(bytes + ".");
  }
}

}  // namespace
