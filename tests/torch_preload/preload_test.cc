// libtorch's threads in workers: with InitOptions::preload, whose results are in all of them, and when a trial's CPUs
// change; and libtorch in a trial that gets a GPU.
#include <gtest/gtest.h>
#include <torch/torch.h>
#include <unistd.h>

#include <cstdlib>

#include "cadre/init.h"
#include "cadre/train.h"
#include "cadre/tune.h"
#include "support/gpus.h"
#include "support/temporary_directory.h"

namespace {

using namespace cadre;
using test_support::TemporaryDirectory;

struct Preloaded {
  pid_t process = 0;
  torch::Tensor images = {};
  torch::nn::Sequential model = nullptr;
  torch::Tensor output = {};
};
Preloaded preloaded;

// Runs everything that libtorch spreads over threads: large sums, products and convolutions, forward and backward.
void load() {
  torch::manual_seed(1);
  preloaded.process = ::getpid();
  preloaded.images = torch::rand({64, 1, 28, 28});
  preloaded.model = torch::nn::Sequential(torch::nn::Conv2d(1, 16, 3), torch::nn::ReLU(), torch::nn::Flatten(),
                                          torch::nn::Linear(16 * 26 * 26, 256));
  preloaded.output = preloaded.model->forward(preloaded.images);
  preloaded.output.square().mean().backward();
  preloaded.model->zero_grad();
  const torch::Tensor square = torch::rand({700, 700});
  torch::mm(square, square).sum();
}

Value uses_what_is_loaded(const Config&) {
  const torch::Tensor output = preloaded.model->forward(preloaded.images);
  output.square().mean().backward();
  const torch::Tensor square = torch::rand({700, 700});
  const double sum = torch::mm(square, square).sum().item<double>();
  return {{"is_of_server", preloaded.process == ::getppid()},
          {"is_the_same", torch::allclose(output, preloaded.output, 1e-4, 1e-5)},
          {"sum", sum},
          {"threads", at::get_num_threads()}};
}

TEST(Preload, OfTensorsAndAModelIsThereInAllWorkersWithThreadsOfTheirOwn) {
  const TemporaryDirectory storage;
  for (const double cpus : {1.0, 2.0}) {
    const train::Result result =
        train::Trainer(fn<uses_what_is_loaded>, {.scaling_config = {.resources_per_worker = Resources{.cpus = cpus}},
                                                 .run_config = {.name = "of_" + std::to_string(static_cast<int>(cpus)),
                                                                .storage_path = storage.path(),
                                                                .verbose = 0}})
            .fit();
    const Config returned(result.return_value);
    EXPECT_TRUE(returned.get<bool>("is_of_server"));
    EXPECT_TRUE(returned.get<bool>("is_the_same"));
    EXPECT_GT(returned.get<double>("sum"), 0);
    EXPECT_EQ(returned.get<std::int64_t>("threads"), static_cast<std::int64_t>(cpus));
  }
}

// Reports until its process uses two threads.
void waits_for_another_cpu(const Config&) {
  for (int step = 1; step <= 10 && at::get_num_threads() < 2; ++step)
    tune::report({{"threads", at::get_num_threads()}});
  const torch::Tensor square = torch::rand({700, 700});
  tune::report({{"threads", at::get_num_threads()}, {"sum", torch::mm(square, square).sum().item<double>()}});
}

TEST(Threads, FollowTheCpusOfATrialWhenTheyChange) {
  const TemporaryDirectory storage;
  const tune::ResultGrid results =
      tune::Tuner(fn<waits_for_another_cpu>,
                  {.tune_config = {.scheduler = tune::ResourceChangingScheduler{}},
                   .run_config = {.name = "threads", .storage_path = storage.path(), .verbose = 0}})
          .fit();
  ASSERT_EQ(results.num_terminated(), 1U) << ::testing::PrintToString(results.errors());
  EXPECT_EQ(results[0].metrics.get<int>("threads"), 2);
  EXPECT_EQ(results[0].num_results(), 2);
}

// Adds up numbers from step to step, on a GPU as soon as it has one.
void adds_up_where_it_may(const Config&) {
  const torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  torch::Tensor sum = torch::zeros({1}, device);
  std::int64_t step = 0;
  if (const auto checkpoint = tune::get_checkpoint()) {
    torch::load(sum, checkpoint->path() / "sum.pt", device);
    step = static_cast<std::int64_t>(sum.item<float>());
  }
  while (++step <= 10) {
    sum += 1;
    tune::report({{"gpus", tune::get_context().get_trial_resources().gpus},
                  {"is_on_gpu", sum.is_cuda()},
                  {"sum", sum.item<float>()}},
                 [&](const std::filesystem::path& directory) { torch::save(sum, directory / "sum.pt"); });
  }
}

TEST(Gpu, ATrialThatGetsOneContinuesOnItFromItsCheckpoint) {
  CADRE_NEEDS_GPUS(1);
  const TemporaryDirectory storage;
  const tune::ResultGrid results =
      tune::Tuner(fn<adds_up_where_it_may>,
                  {.tune_config = {.scheduler = tune::ResourceChangingScheduler{.resources_allocation =
                                                                                    tune::DistributeResources{
                                                                                        .increase_by = {{"gpus", 1}},
                                                                                        .increase_by_times = 1}}},
                   .run_config = {.name = "gpu", .storage_path = storage.path(), .verbose = 0}})
          .fit();
  ASSERT_EQ(results.num_terminated(), 1U) << ::testing::PrintToString(results.errors());
  const Metrics& last = results[0].metrics;
  EXPECT_EQ(last.get<double>("gpus"), 1);
  EXPECT_TRUE(last.get<bool>("is_on_gpu"));
  EXPECT_EQ(last.get<double>("sum"), 10) << "no step is lost or done twice";
  EXPECT_EQ(results[0].num_results(), 10);
  EXPECT_LT(last.get<std::int64_t>("iterations_since_restore"), 10) << "it began without a GPU";
}

}  // namespace

int main(int argc, char** argv) {
  ::setenv("MKL_NUM_THREADS", "4", 1);  // as a user's shell may set it
  // load() calls backward(), which starts CUDA and a thread of it where there is a GPU: nothing could be forked then.
  const bool sees_a_gpu = cadre::resources::count_gpus() > 0;
  cadre::init(argc, argv, {.num_cpus = 2, .preload = sees_a_gpu ? nullptr : load});
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
