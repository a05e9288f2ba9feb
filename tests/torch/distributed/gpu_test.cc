// Tests that need GPUs: `make test-gpu`. Ranks are processes with one GPU each, as workers are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cadre/torch.h"
#include "cadre/train_torch.h"
#include "nets.h"
#include "ranks.h"
#include "resources/gpus.h"
#include "support/gpus.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"
#include "torch/distributed/nccl_backend.h"
#include "torch/distributed/process_group.h"

namespace cadre::train {
namespace {

using namespace test_support;

const torch::Device first_gpu(torch::kCUDA, 0);

// Runs the body in a rank for each of these GPUs, which sees only that one.
void run_gpu_ranks(const std::vector<int>& gpus, const std::function<void(int rank)>& body) {
  const auto see_own_gpu = [&](int rank) {
    ::setenv("CUDA_VISIBLE_DEVICES", resources::visible_devices({gpus.at(static_cast<std::size_t>(rank))}).c_str(), 1);
  };
  const std::vector<int> statuses = statuses_of_ranks(static_cast<int>(gpus.size()), body, {}, see_own_gpu);
  EXPECT_EQ(statuses, std::vector<int>(gpus.size(), 0));
}

TEST(Gpu, IsTheDeviceOfAProcessThatSeesOne) {
  CADRE_NEEDS_GPUS(1);
  ASSERT_TRUE(torch::cuda::is_available()) << "this torch is a CPU build, or its CUDA does not go with the driver";
  EXPECT_EQ(get_device(), first_gpu);
}

TEST(Gpu, CadreIsBuiltWithNccl) {
  CADRE_NEEDS_GPUS(1);
  EXPECT_TRUE(distributed::has_nccl());
}

TEST(Gpu, NcclWorksInAGroupOfOneRank) {
  CADRE_NEEDS_GPUS(1);
  const auto group = distributed::make_process_group(
      std::make_shared<SharedStore>(), {.backend = "nccl", .timeout = std::chrono::minutes(1), .device = first_gpu});
  std::vector<torch::Tensor> tensors{torch::arange(5.F, torch::TensorOptions(first_gpu))};
  group->allreduce(tensors)->wait();
  EXPECT_TRUE(torch::equal(tensors[0].cpu(), torch::arange(5.F)));
  std::vector<torch::Tensor> on_cpu{torch::arange(3.F)};
  group->allreduce(on_cpu)->wait();  // by Gloo
  EXPECT_TRUE(torch::equal(on_cpu[0], torch::arange(3.F)));
  group->shutdown();
}

// Runs in each of two ranks, on whatever GPUs they have.
void combine_and_copy_tensors(int rank) {
  const auto options = torch::TensorOptions(get_device());
  EXPECT_TRUE(get_device().is_cuda());
  torch::Tensor sum = torch::full({1000}, rank + 1, options);
  all_reduce(sum);
  EXPECT_TRUE(torch::equal(sum.cpu(), torch::full({1000}, 3)));
  torch::Tensor copied = torch::full({3}, rank, options);
  broadcast(copied, 1);
  EXPECT_TRUE(torch::equal(copied.cpu(), torch::full({3}, 1)));
  const std::vector<torch::Tensor> gathered = all_gather(torch::full({2}, rank, options));
  EXPECT_TRUE(torch::equal(gathered.at(1).cpu(), torch::full({2}, 1)));
  MeanMetric mean;
  mean.update(torch::full({1}, rank, options));
  EXPECT_EQ(mean.compute(), 0.5);
}

// One of two ranks, which come to the parameters of one process.
void train_with_another_rank(int rank) {
  const Data data = make_data(160);
  torch::manual_seed(100);
  PlainNet alone;
  torch::manual_seed(100 + rank);
  auto model = prepare_model(PlainNet());
  torch::optim::SGD own(model.parameters(), 0.1);
  torch::optim::SGD reference(alone->parameters(), 0.1);
  for (std::int64_t step = 0; step < 10; ++step) {
    const Data batch = data.rows(step * 16, (step + 1) * 16);
    Data share = batch.rows(rank * 8, (rank + 1) * 8);
    share = {share.images.to(get_device()), share.labels.to(get_device())};
    model.zero_grad();
    loss_of(model(share.images), share).backward();
    own.step();
    reference.zero_grad();
    loss_of(alone(batch.images), batch).backward();
    reference.step();
  }
  for (const torch::Tensor& parameter : model.parameters()) EXPECT_TRUE(parameter.is_cuda());
  EXPECT_LE(distance(flat(model.parameters()).cpu(), flat(alone->parameters())), 1e-3) << "TF32 or not";
}

const std::vector<int> two_gpus{0, 1};
const std::vector<int> one_gpu_twice{0, 0};

TEST(Gpu, NcclCombinesAndCopiesTensorsOfTwoGpus) {
  CADRE_NEEDS_GPUS(2);
  run_gpu_ranks(two_gpus, combine_and_copy_tensors);
}

TEST(Gpu, TwoRanksTrainTheParametersOfOneProcessWithTheJoinedBatch) {
  CADRE_NEEDS_GPUS(2);
  run_gpu_ranks(two_gpus, train_with_another_rank);
}

// NCCL refuses ranks on one GPU: they get Gloo.
TEST(Gpu, RanksThatShareOneCombineAndCopyItsTensors) {
  CADRE_NEEDS_GPUS(1);
  run_gpu_ranks(one_gpu_twice, combine_and_copy_tensors);
}

TEST(Gpu, RanksThatShareOneTrainTheParametersOfOneProcessWithTheJoinedBatch) {
  CADRE_NEEDS_GPUS(1);
  run_gpu_ranks(one_gpu_twice, train_with_another_rank);
}

TEST(Gpu, RanksThatShareOneAreToldSoWhenTheyAskForNccl) {
  CADRE_NEEDS_GPUS(1);
  const auto store = std::make_shared<SharedStore>();
  const auto ask_for_nccl = [&](int rank) {
    ::setenv("CUDA_VISIBLE_DEVICES", resources::visible_devices({0}).c_str(), 1);
    const worker::GroupPlace place{.world_rank = rank, .world_size = 2};
    EXPECT_THAT(message_of<InvalidArgument>([&] { torch_backend().join(store, place, {{"backend", "nccl"}}); }),
                testing::AllOf(testing::HasSubstr("share a GPU of node 0"), testing::HasSubstr("gloo")));
  };
  EXPECT_EQ(statuses_of_ranks(2, [](int) {}, {}, ask_for_nccl), std::vector<int>(2, 0));
}

// Returns the parameters of a network trained with dropout.
torch::Tensor train_reproducibly() {
  enable_reproducibility(7);
  torch::nn::Sequential net(torch::nn::Conv2d(1, 8, 3), torch::nn::ReLU(), torch::nn::Dropout(0.5),
                            torch::nn::Flatten(), torch::nn::Linear(8 * 26 * 26, 10));
  net->to(first_gpu);
  torch::optim::SGD sgd(net->parameters(), 0.1);
  for (int step = 0; step < 20; ++step) {
    const auto images = torch::randn({64, 1, 28, 28}, torch::TensorOptions(first_gpu));
    const auto labels = torch::randint(10, {64}, torch::TensorOptions(first_gpu).dtype(torch::kLong));
    sgd.zero_grad();
    torch::nn::functional::cross_entropy(net->forward(images), labels).backward();
    sgd.step();
  }
  return flat(net->parameters()).cpu();
}

TEST(Gpu, ReproducibleTrainingComesToTheSameParametersTwice) {
  CADRE_NEEDS_GPUS(1);
  const torch::Tensor once = train_reproducibly();
  EXPECT_TRUE(torch::equal(once, train_reproducibly()));
}

TEST(Gpu, ALoadersBatchesLieOnItAndHaveTheirValues) {
  CADRE_NEEDS_GPUS(1);
  const auto dataset = TensorDataset(torch::arange(100).unsqueeze(1), -torch::arange(100));
  std::int64_t sum = 0;
  for (const auto& batch : prepare_data_loader(dataset, {.batch_size = 7, .prefetch = 3})) {
    EXPECT_EQ(batch.data.device(), first_gpu);
    EXPECT_TRUE(torch::equal(batch.data.squeeze(1).cpu(), -batch.target.cpu()));
    sum += batch.data.sum().item<std::int64_t>();
  }
  EXPECT_EQ(sum, 99 * 100 / 2);
}

TEST(Gpu, AutocastComputesInTheShorterTypeThere) {
  CADRE_NEEDS_GPUS(1);
  const torch::Tensor ones = torch::ones({8, 8}, torch::TensorOptions(first_gpu));
  {
    const auto mixed_precision = autocast(torch::kHalf);
    EXPECT_EQ(torch::mm(ones, ones).scalar_type(), torch::kHalf);
  }
  EXPECT_EQ(torch::mm(ones, ones).scalar_type(), torch::kFloat);
}

TEST(Gpu, AModelsAndOptimizersStateGoesFromItToTheCpuAndBack) {
  CADRE_NEEDS_GPUS(1);
  const TemporaryDirectory directory;
  const auto file = directory.path() / "state.pt";
  PlainNet trained;
  trained->to(first_gpu);
  torch::optim::SGD sgd(trained->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  Data data = make_data(4);
  data = {data.images.to(first_gpu), data.labels.to(first_gpu)};
  loss_of(trained(data.images), data).backward();
  sgd.step();
  save_state(file, trained, sgd, 7);
  for (const torch::Device device : {torch::Device(torch::kCPU), first_gpu}) {
    PlainNet model;
    model->to(device);
    torch::optim::SGD its_sgd(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
    EXPECT_EQ(load_state(file, model, its_sgd), 7);
    EXPECT_EQ(model->first->weight.device(), device);
    EXPECT_TRUE(torch::equal(flat(model->parameters()).cpu(), flat(trained->parameters()).cpu()));
  }
}

}  // namespace
}  // namespace cadre::train
