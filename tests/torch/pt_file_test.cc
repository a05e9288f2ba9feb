// Files of torch.save under damage, and pickles that no torch.save writes.
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

  // Loads a changed file into a fresh model: true when that is refused with a StorageError or InvalidArgument that
  // names the file; otherwise the values must be those that were saved.
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
  EXPECT_GT(refused, tries / 3);  // the rest hit padding and fields that nobody needs
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
  // _rebuild_tensor_v2 of a float storage of `numel` elements; the arguments are pickled.
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
  EXPECT_THAT(error_of(tensor(huge, zero, two_by_four, four_one)), HasSubstr("impossible size"));
}

TEST_F(UnpicklerTest, random_bytes_never_crash) {
  // Mostly operations that exist, so that the streams get somewhere.
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
