#include "cadre/data_torch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::data {
namespace {

using test_support::message_of;
using ::testing::HasSubstr;

TEST(DataTorch, TensorsLieWhereTheColumnsDo) {
  const Batch batch{{"image", Column(std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {2, 3})}};
  const torch::Tensor tensor = to_tensor(batch.slice(1, 1), "image");
  EXPECT_EQ(tensor.sizes(), (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(tensor.data_ptr<std::uint8_t>(), batch.values<std::uint8_t>("image").data() + 6);
  EXPECT_EQ(tensor[0][1][2].item<int>(), 12);
}

TEST(DataTorch, ImagesComeBackFromParquet) {
  const test_support::TemporaryDirectory folder;
  const torch::Tensor images = torch::arange(24).to(torch::kUInt8).view({4, 6});
  from_tensors({{"image", images}}).write_parquet(folder / "images");
  const Batch batch = read_parquet(folder / "images").take_batch(4);
  EXPECT_TRUE(to_tensor(batch, "image").equal(images)) << batch.type("image");
}

TEST(DataTorch, TensorsKeepTheirBatch) {
  torch::Tensor tensor;
  {
    const Batch batch{{"x", std::vector<double>(100000, 2.0)}};
    tensor = to_tensor(batch, "x");
  }
  EXPECT_DOUBLE_EQ(tensor.sum().item<double>(), 200000);
}

TEST(DataTorch, EveryTypeComesBack) {
  for (const auto type : {torch::kInt8, torch::kInt16, torch::kInt32, torch::kInt64, torch::kUInt8, torch::kFloat,
                          torch::kFloat64, torch::kBool}) {
    const torch::Tensor tensor = torch::arange(6).to(type);
    const Batch batch{{"x", to_column(tensor)}};
    const torch::Tensor back = to_tensor(batch, "x");
    EXPECT_EQ(back.scalar_type(), type);
    EXPECT_TRUE(torch::equal(back, tensor)) << torch::toString(type);
  }
}

TEST(DataTorch, ColumnsLieWhereTheTensorsDo) {
  const torch::Tensor tensor = torch::rand({4, 2});
  const Column column = to_column(tensor);
  const Batch batch{{"x", column}};
  EXPECT_EQ(batch.values<float>("x").data(), tensor.data_ptr<float>());
  const Batch transposed{{"x", to_column(tensor.t())}};
  EXPECT_TRUE(torch::equal(to_tensor(transposed, "x"), tensor.t()));
}

TEST(DataTorch, UnsignedNumbersAreConverted) {
  const Batch batch{{"x", std::vector<std::uint32_t>{4000000000U}}};
  EXPECT_EQ(to_tensor(batch, "x").item<std::int64_t>(), 4000000000);
}

TEST(DataTorch, NamesAColumnThatIsNoTensor) {
  const Batch batch{{"text", std::vector<std::string>{"x"}}};
  EXPECT_THAT(message_of<InvalidArgument>([&] { to_tensors(batch); }), HasSubstr("column \"text\" is of string"));
  EXPECT_THAT(message_of<InvalidArgument>([] { from_tensors({{"half", torch::ones({3}, torch::kHalf)}}); }),
              HasSubstr("column \"half\": a tensor of Half"));
  EXPECT_THROW(to_column(torch::tensor(3)), InvalidArgument);
}

TEST(DataTorch, IteratesOverTensorsOfTheTypesThatAreAskedFor) {
  const Dataset dataset = from_tensors({{"x", torch::arange(20).view({10, 2})}, {"y", torch::arange(10)}});
  std::int64_t next = 0;
  std::vector<std::int64_t> sizes;
  for (TensorBatch& batch :
       iter_torch_batches(dataset, {.batch_size = 4, .dtypes = {{"x", torch::kFloat}}, .device = torch::kCPU})) {
    EXPECT_EQ(batch.at("x").scalar_type(), torch::kFloat);
    EXPECT_EQ(batch.at("y").scalar_type(), torch::kInt64);
    EXPECT_EQ(batch.at("y")[0].item<std::int64_t>(), next);
    EXPECT_EQ(batch.at("x")[0][1].item<float>(), static_cast<float>(2 * next + 1));
    sizes.push_back(batch.at("y").size(0));
    next += sizes.back();
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{4, 4, 2}));
}

TEST(DataTorch, RefusesATypeForAColumnThatIsNotThere) {
  const Dataset dataset = from_tensors({{"x", torch::arange(4)}});
  EXPECT_THAT(message_of<InvalidArgument>([&] {
                iter_torch_batches(dataset, {.dtypes = {{"z", torch::kFloat}}, .device = torch::kCPU}).begin();
              }),
              HasSubstr("no column \"z\""));
}

TEST(DataTorch, IteratesOverAShard) {
  Shard shard = from_tensors({{"x", torch::arange(10)}}).shard({.rank = 1, .world_size = 2});
  std::int64_t sum = 0;
  for (TensorBatch& batch : iter_torch_batches(shard, {.batch_size = 2, .device = torch::kCPU}))
    sum += batch.at("x").sum().item<std::int64_t>();
  EXPECT_EQ(sum, 5 + 6 + 7 + 8 + 9);
}

std::vector<std::int64_t> order_of(const TorchBatches& batches) {
  std::vector<std::int64_t> order;
  for (const TensorBatch& batch : batches) {
    const torch::Tensor rows = batch.at("x");
    for (std::int64_t row = 0; row < rows.size(0); ++row) order.push_back(rows[row].item<std::int64_t>());
  }
  return order;
}

TEST(DataTorch, EachEpochHasAnotherOrderAndTheSameWhenItIsAskedAgain) {
  const Dataset dataset = from_tensors({{"x", torch::arange(100)}});
  TorchBatchesOptions options{.batch_size = 8, .local_shuffle_buffer_size = 100, .device = torch::kCPU};
  Shard shard = dataset.shard({.rank = 0, .world_size = 1});
  const auto first = order_of(iter_torch_batches(shard, options));
  EXPECT_EQ(order_of(iter_torch_batches(shard, options)), first) << "the end of a loop begins no epoch";
  shard.set_epoch(1);
  const auto second = order_of(iter_torch_batches(shard, options));
  EXPECT_NE(second, first);
  EXPECT_THAT(second, ::testing::UnorderedElementsAreArray(first));
  shard.set_epoch(0);
  EXPECT_EQ(order_of(iter_torch_batches(shard, options)), first);

  const auto of_dataset = order_of(iter_torch_batches(dataset, options));
  EXPECT_EQ(order_of(iter_torch_batches(dataset, options)), of_dataset);
  options.epoch = 1;
  EXPECT_NE(order_of(iter_torch_batches(dataset, options)), of_dataset);
}

}  // namespace
}  // namespace cadre::data
