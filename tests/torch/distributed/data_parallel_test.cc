// Data-parallel training in several ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "cadre/train_torch.h"
#include "nets.h"
#include "ranks.h"
#include "support/message_of.h"
#include "torch/small_net.h"

namespace cadre::train {
namespace {

using namespace test_support;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t batch_size = 16;

bool same_on_all_ranks(const torch::Tensor& tensor) {
  for (const torch::Tensor& other : all_gather(tensor)) {
    if (!torch::equal(other, tensor)) return false;
  }
  return true;
}

torch::optim::SGD make_sgd(const std::vector<torch::Tensor>& parameters) {
  return torch::optim::SGD(parameters, torch::optim::SGDOptions(0.1).momentum(0.9));
}

// Returns this rank's share of a batch.
Data share_of(const Data& batch, int rank, int world_size) {
  const std::int64_t count = batch.labels.size(0) / world_size;
  return batch.rows(rank * count, (rank + 1) * count);
}

struct Setting {
  std::string name;
  PrepareModelOptions options;
};

// Buckets are so small that the net needs several, except in "OneBucket".
const std::vector<Setting> settings{
    {"Defaults", {.bucket_cap_bytes = 1024}},
    {"OneBucket", {}},
    {"BucketViews", {.gradient_as_bucket_view = true, .bucket_cap_bytes = 1024}},
    {"UnusedSearched", {.find_unused_parameters = true, .bucket_cap_bytes = 1024}},
    {"StaticGraph", {.static_graph = true, .bucket_cap_bytes = 1024}},
    {"StaticGraphInBucketViews", {.static_graph = true, .gradient_as_bucket_view = true, .bucket_cap_bytes = 1024}},
};

class TrainingTogether : public testing::TestWithParam<std::tuple<int, Setting>> {
 protected:
  int world_size() const { return std::get<0>(GetParam()); }
  const PrepareModelOptions& options() const { return std::get<1>(GetParam()).options; }
};

TEST_P(TrainingTogether, GivesTheSameBitsOnAllRanksAndTheParametersOfOneProcessWithTheJoinedBatch) {
  run_ranks(world_size(), [&](int rank) {
    constexpr int steps = 10;
    const Data data = make_data(steps * batch_size);
    torch::manual_seed(100);
    PlainNet alone;
    torch::manual_seed(100 + rank);
    auto model = prepare_model(PlainNet(), options());
    EXPECT_TRUE(torch::equal(flat(model.parameters()), flat(alone->parameters()))) << "rank 0's parameters";

    torch::optim::SGD own = make_sgd(model.parameters());
    torch::optim::SGD reference = make_sgd(alone->parameters());
    for (int step = 0; step < steps; ++step) {
      const Data batch = data.rows(step * batch_size, (step + 1) * batch_size);
      const Data share = share_of(batch, rank, world_size());
      model.zero_grad();
      loss_of(model(share.images), share).backward();
      own.step();
      reference.zero_grad();
      loss_of(alone(batch.images), batch).backward();
      reference.step();
    }
    const torch::Tensor parameters = flat(model.parameters());
    EXPECT_TRUE(same_on_all_ranks(parameters));
    EXPECT_LE(distance(parameters, flat(alone->parameters())), 1e-6);
    EXPECT_GT(parameters.abs().max().item<double>(), 0.1);
  });
}

// Computes the sub-batches one after the other, each with the same initial running means, and steps with the mean
// gradient.
void reference_step(SmallNet& model, torch::optim::Optimizer& optimizer, const Data& batch, int world_size) {
  optimizer.zero_grad();
  std::vector<torch::Tensor> before;
  for (const torch::Tensor& buffer : model->buffers()) before.push_back(buffer.clone());
  std::vector<torch::Tensor> of_rank_zero;
  for (int rank = 0; rank < world_size; ++rank) {
    const torch::NoGradGuard no_gradients;
    std::vector<torch::Tensor> buffers = model->buffers();
    for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].copy_(before[i]);
    {
      const torch::AutoGradMode gradients(true);
      const Data share = share_of(batch, rank, world_size);
      (loss_of(model(share.images), share) / world_size).backward();
    }
    for (std::size_t i = 0; i < buffers.size() && rank == 0; ++i) of_rank_zero.push_back(buffers[i].clone());
  }
  const torch::NoGradGuard no_gradients;
  std::vector<torch::Tensor> buffers = model->buffers();
  for (std::size_t i = 0; i < buffers.size(); ++i) buffers[i].copy_(of_rank_zero[i]);
  optimizer.step();
}

TEST_P(TrainingTogether, WithBatchNormIsOneProcessThatRunsTheSubBatchesApart) {
  run_ranks(world_size(), [&](int rank) {
    constexpr int steps = 10;
    const Data data = make_data(steps * batch_size);
    torch::manual_seed(100);
    SmallNet alone;
    torch::manual_seed(100 + rank);
    auto model = prepare_model(SmallNet(), options());
    torch::optim::SGD own = make_sgd(model.parameters());
    torch::optim::SGD reference = make_sgd(alone->parameters());
    for (int step = 0; step < steps; ++step) {
      const Data batch = data.rows(step * batch_size, (step + 1) * batch_size);
      const Data share = share_of(batch, rank, world_size());
      model.zero_grad();
      loss_of(model(share.images), share).backward();
      own.step();
      reference_step(alone, reference, batch, world_size());
    }
    {
      const torch::NoGradGuard no_gradients;
      model.eval();
      model(data.images.slice(0, 0, 2));  // broadcasts the buffers of the last step
    }
    EXPECT_TRUE(same_on_all_ranks(flat(model.parameters())));
    EXPECT_LE(distance(flat(model.parameters()), flat(alone->parameters())), 1e-6);
    EXPECT_TRUE(same_on_all_ranks(flat(model->buffers())));
    EXPECT_LE(distance(flat(model->buffers()), flat(alone->buffers())), 1e-6);
  });
}

TEST_P(TrainingTogether, AccumulatesGradientsOfSeveralPassesAndAveragesThemOnce) {
  run_ranks(world_size(), [&](int rank) {
    const Data data = make_data(4 * batch_size);
    torch::manual_seed(1);
    auto model = prepare_model(PlainNet(), options());
    torch::manual_seed(1);
    PlainNet alone;
    for (int step = 0; step < 2; ++step) {  // the first time, no synchronised pass precedes
      const Data first = share_of(data.rows(0, 2 * batch_size), rank, world_size());
      const Data second = share_of(data.rows(2 * batch_size, 4 * batch_size), rank, world_size());
      model.zero_grad();
      {
        const auto local = model.no_sync();
        loss_of(model(first.images), first).backward();
        EXPECT_FALSE(same_on_all_ranks(flat_gradients(model.module())));
      }
      loss_of(model(second.images), second).backward();
      const torch::Tensor gradients = flat_gradients(model.module());
      EXPECT_TRUE(same_on_all_ranks(gradients));
      drop_gradients(*alone);
      loss_of(alone(data.images), data).backward();
      EXPECT_LE(distance(gradients / 2, flat_gradients(*alone)), 1e-6);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, TrainingTogether, testing::Combine(testing::Values(2, 4), testing::ValuesIn(settings)),
                         [](const auto& info) {
                           return std::get<1>(info.param).name + std::to_string(std::get<0>(info.param));
                         });

TEST(UnusedParameters, MayDifferBetweenRanksAndPassesWhenTheyAreSearched) {
  for (const bool views : {false, true}) {
    run_ranks(2, [&](int rank) {
      const Data data = make_data(12 * batch_size);
      torch::manual_seed(3);
      BranchNet alone;
      auto model = prepare_model(BranchNet(), {.find_unused_parameters = true, .gradient_as_bucket_view = views});
      {
        const torch::NoGradGuard no_gradients;
        std::vector<torch::Tensor> parameters = alone->parameters();
        for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i].copy_(model.parameters()[i]);
      }
      torch::optim::SGD own = make_sgd(model.parameters());
      torch::optim::SGD reference = make_sgd(alone->parameters());
      const auto goes_left = [](int step, int of_rank) { return step % 4 == 3 || (step + of_rank) % 2 == 0; };
      for (int step = 0; step < 12; ++step) {
        const Data batch = data.rows(step * batch_size, (step + 1) * batch_size);
        const Data share = share_of(batch, rank, 2);
        model.zero_grad();
        loss_of(model(share.images, goes_left(step, rank)), share).backward();
        own.step();
        reference.zero_grad();
        for (int other = 0; other < 2; ++other) {
          const Data its_share = share_of(batch, other, 2);
          (loss_of(alone(its_share.images, goes_left(step, other)), its_share) / 2).backward();
        }
        reference.step();
        EXPECT_FALSE(model->idle->weight.grad().defined()) << "no rank uses it";
        EXPECT_EQ(model->right->weight.grad().defined(), step % 4 != 3) << step;
      }
      EXPECT_TRUE(same_on_all_ranks(flat(model.parameters())));
      EXPECT_LE(distance(flat(model.parameters()), flat(alone->parameters())), 1e-6);
    });
  }
}

TEST(UnusedParameters, AreAnErrorOfTheNextPassWhenTheyAreNotSearched) {
  run_ranks(2, [](int) {
    const Data data = make_data(batch_size);
    auto model = prepare_model(BranchNet());
    loss_of(model(data.images, true), data).backward();
    EXPECT_THAT(message_of<std::exception>([&] { model(data.images, true); }),
                HasSubstr("parameters that were not used in producing loss"));
  });
}

TEST(UnusedParameters, OfAStaticGraphAreFoundInTheFirstPass) {
  run_ranks(2, [](int rank) {
    const Data data = make_data(4 * batch_size);
    auto model = prepare_model(BranchNet(), {.static_graph = true, .bucket_cap_bytes = 512});
    torch::optim::SGD sgd = make_sgd(model.parameters());
    for (int step = 0; step < 4; ++step) {
      const Data share = share_of(data.rows(step * batch_size, (step + 1) * batch_size), rank, 2);
      model.zero_grad();
      loss_of(model(share.images, true), share).backward();
      EXPECT_TRUE(same_on_all_ranks(flat_gradients(model.module())));
      EXPECT_FALSE(model->right->weight.grad().defined());
      sgd.step();
    }
    EXPECT_TRUE(same_on_all_ranks(flat(model.parameters())));
  });
}

// A net with several outputs, of which the loss uses one.
struct TwoHeadsImpl : torch::nn::Module {
  using Outputs = std::map<std::string, std::tuple<torch::Tensor, int>>;

  Outputs forward(const torch::Tensor& images) {
    const torch::Tensor features = trunk(images.flatten(1));
    return {{"one", {first(features), 1}}, {"other", {second(features), 2}}, {"none", {torch::Tensor(), 3}}};
  }

  torch::nn::Linear trunk = register_module("trunk", torch::nn::Linear(64, 8));
  torch::nn::Linear first = register_module("first", torch::nn::Linear(8, 10));
  torch::nn::Linear second = register_module("second", torch::nn::Linear(8, 10));
};
TORCH_MODULE(TwoHeads);

TEST(UnusedParameters, AreFoundWhereTheLossUsesOneOfSeveralOutputs) {
  for (const PrepareModelOptions& options :
       {PrepareModelOptions{.find_unused_parameters = true}, PrepareModelOptions{.static_graph = true}}) {
    run_ranks(2, [&](int rank) {
      const Data data = make_data(6 * batch_size);
      auto model = prepare_model(TwoHeads(), options);
      for (int step = 0; step < 3; ++step) {
        const Data share = share_of(data.rows(step * batch_size, (step + 1) * batch_size), rank, 2);
        model.zero_grad();
        loss_of(std::get<0>(model(share.images)["one"]), share).backward();
        EXPECT_TRUE(same_on_all_ranks(flat_gradients(model.module())));
        EXPECT_TRUE(model->first->weight.grad().defined());
        EXPECT_FALSE(model->second->weight.grad().defined());
      }
    });
  }
}

struct Prediction {
  torch::Tensor logits;
};

struct OpaqueNetImpl : torch::nn::Module {
  Prediction forward(const torch::Tensor& images) { return {linear(images.flatten(1))}; }

  torch::nn::Linear linear = register_module("linear", torch::nn::Linear(64, 10));
};
TORCH_MODULE(OpaqueNet);

TEST(ModelOutputs, OfAnyTypeAreFineUntilTheyAreSearched) {
  run_ranks(2, [](int rank) {
    const Data data = share_of(make_data(2 * batch_size), rank, 2);
    auto model = prepare_model(OpaqueNet());
    loss_of(model(data.images).logits, data).backward();
    EXPECT_TRUE(same_on_all_ranks(flat_gradients(model.module())));
    for (const PrepareModelOptions& options :
         {PrepareModelOptions{.find_unused_parameters = true}, PrepareModelOptions{.static_graph = true}}) {
      auto searched = prepare_model(OpaqueNet(), options);
      EXPECT_THAT(message_of<InvalidArgument>([&] { searched(data.images); }), HasSubstr("what forward() returns"));
    }
  });
}

TEST(CompressedGradients, AreLessPreciseAndTheSameOnAllRanks) {
  run_ranks(2, [](int rank) {
    const Data share = share_of(make_data(batch_size), rank, 2);
    torch::manual_seed(1);
    auto precise = prepare_model(PlainNet());
    torch::manual_seed(1);
    auto model = prepare_model(PlainNet(), {.compress_gradients = true});
    loss_of(precise(share.images), share).backward();
    loss_of(model(share.images), share).backward();
    const torch::Tensor gradients = flat_gradients(model.module());
    EXPECT_TRUE(same_on_all_ranks(gradients));
    const double difference = distance(gradients, flat_gradients(precise.module()));
    EXPECT_GT(difference, 0);
    EXPECT_LT(difference, 1e-3);
  });
}

TEST(Buffers, AreRankZerosAtTheStartAndBeforeEachPassUnlessToldOtherwise) {
  run_ranks(2, [](int rank) {
    const Data data = make_data(batch_size);
    const auto train_once = [&](PreparedModel<SmallNetImpl>& model) {
      loss_of(model(data.images * (rank + 1) + rank), data).backward();
      model.zero_grad();
    };
    SmallNet net;
    net->norm->running_mean.fill_(rank);
    auto model = prepare_model(net);
    EXPECT_EQ(net->norm->running_mean.abs().sum().item<double>(), 0);
    train_once(model);
    EXPECT_FALSE(same_on_all_ranks(flat(model->buffers())));
    const torch::Tensor own = flat(model->buffers()).clone();
    const torch::NoGradGuard no_gradients;
    model.eval();
    model(data.images);
    EXPECT_TRUE(same_on_all_ranks(flat(model->buffers())));
    EXPECT_EQ(torch::equal(flat(model->buffers()), own), rank == 0);
  });
  run_ranks(2, [](int rank) {
    const Data data = make_data(batch_size);
    SmallNet net;
    net->norm->running_mean.fill_(rank);
    auto model = prepare_model(net, {.broadcast_buffers = false});
    EXPECT_EQ(net->norm->running_mean.abs().sum().item<double>(), 0);
    for (int step = 0; step < 2; ++step) {
      loss_of(model(data.images * (rank + 1)), data).backward();
      model.zero_grad();
    }
    EXPECT_FALSE(same_on_all_ranks(flat(model->buffers())));
  });
}

TEST(Buffers, MayBeReplacedBetweenAForwardPassAndItsBackwardPass) {
  run_ranks(2, [](int rank) {
    const Data data = make_data(batch_size);
    auto model = prepare_model(SmallNet());
    model.eval();  // this backward pass needs the running means
    for (int step = 0; step < 2; ++step) {
      const torch::Tensor first = loss_of(model(data.images + rank), data);
      const torch::Tensor second = loss_of(model(data.images), data);
      (first + second).backward();
      EXPECT_TRUE(same_on_all_ranks(flat_gradients(model.module())));
      model.zero_grad();
    }
  });
}

TEST(SparseGradients, OfEmbeddingsAreAveraged) {
  run_ranks(2, [](int rank) {
    torch::nn::Sequential net(torch::nn::Embedding(torch::nn::EmbeddingOptions(6, 3).sparse(true)),
                              torch::nn::Linear(3, 1));
    auto model = prepare_model(net);
    for (int step = 0; step < 2; ++step) {
      model.zero_grad();
      model(torch::tensor({rank, 4})).sum().backward();
      const torch::Tensor gradient = model.parameters()[0].grad();
      ASSERT_TRUE(gradient.is_sparse());
      EXPECT_TRUE(same_on_all_ranks(gradient.to_dense()));
      const torch::Tensor rows = gradient.to_dense().abs().sum(1);
      EXPECT_GT(rows[0].item<double>(), 0) << "of rank 0";
      EXPECT_NEAR(rows[0].item<double>(), rows[1].item<double>(), 1e-6) << "of rank 1";
      EXPECT_NEAR(2 * rows[0].item<double>(), rows[4].item<double>(), 1e-6) << "of both";
    }
  });
}

// A net with one parameter under two names.
struct TiedNetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& x) { return torch::relu(x.mm(encoder)).mm(decoder.t()); }

  torch::Tensor encoder = register_parameter("encoder", torch::rand({10, 10}));
  torch::Tensor decoder = register_parameter("decoder", encoder);
};
TORCH_MODULE(TiedNet);

TEST(SharedParameters, AreAveragedOnce) {
  for (const bool views : {false, true}) {
    run_ranks(2, [&](int rank) {
      TiedNet net;
      ASSERT_TRUE(net->encoder.is_same(net->decoder));
      auto model = prepare_model(net, {.gradient_as_bucket_view = views});
      const torch::Tensor input =
          torch::rand({2, 10}, at::detail::createCPUGenerator(static_cast<std::uint64_t>(rank)));
      for (int step = 0; step < 2; ++step) {
        model.zero_grad();
        model(input).sum().backward();
        const torch::Tensor averaged = net->encoder.grad().clone();
        EXPECT_TRUE(same_on_all_ranks(averaged));
        drop_gradients(*net);
        {
          const auto local = model.no_sync();
          model(input).sum().backward();
        }
        torch::Tensor own = net->encoder.grad().clone();
        all_reduce(own, ReduceOp::mean);
        EXPECT_LE(distance(own, averaged), 1e-6);
      }
    });
  }
}

struct ThrowsInBackward : torch::autograd::Function<ThrowsInBackward> {
  static torch::Tensor forward(torch::autograd::AutogradContext*, const torch::Tensor& x) { return x.clone(); }
  static torch::autograd::variable_list backward(torch::autograd::AutogradContext*,
                                                 const torch::autograd::variable_list&) {
    throw std::runtime_error("there is no gradient");
  }
};

struct FaultyNetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& images) {
    const torch::Tensor between = first(images.flatten(1));
    return last(fails ? ThrowsInBackward::apply(between) : between);
  }

  torch::nn::Linear first = register_module("first", torch::nn::Linear(64, 8));
  torch::nn::Linear last = register_module("last", torch::nn::Linear(8, 10));
  bool fails = false;
};
TORCH_MODULE(FaultyNet);

TEST(PreparedModel, SaysAfterABackwardPassThatHasThrownThatItMustBePreparedAgain) {
  run_ranks(2, [](int rank) {
    const Data share = share_of(make_data(batch_size), rank, 2);
    FaultyNet net;
    {
      auto model = prepare_model(net);
      net->fails = true;
      EXPECT_ANY_THROW(loss_of(model(share.images), share).backward());
      net->fails = false;
      EXPECT_THAT(message_of<std::exception>([&] { model(share.images); }),
                  HasSubstr("the last backward pass has thrown"));
    }
    auto model = prepare_model(net);
    model.zero_grad();
    loss_of(model(share.images), share).backward();
    EXPECT_TRUE(same_on_all_ranks(flat_gradients(*net)));
  });
}

TEST(PreparedModel, AGraphMayOutliveIt) {
  for (const PrepareModelOptions& options :
       {PrepareModelOptions{.find_unused_parameters = true}, PrepareModelOptions{.static_graph = true}}) {
    run_ranks(2, [&](int rank) {
      const Data share = share_of(make_data(batch_size), rank, 2);
      PlainNet net;
      torch::Tensor loss;
      {
        auto model = prepare_model(net, options);
        loss = loss_of(model(share.images), share);
      }
      loss.backward();
      EXPECT_FALSE(same_on_all_ranks(flat_gradients(*net))) << "there is nobody to average them";
    });
  }
}

TEST(PreparedModel, InAWorldOfOneIsTheModelItself) {
  const Data data = make_data(batch_size);
  SmallNet net;
  auto model = prepare_model(net, {.find_unused_parameters = true});
  const auto local = model.no_sync();
  loss_of(model(data.images), data).backward();
  EXPECT_EQ(&model.module(), net.get());
  EXPECT_EQ(model.ptr(), net.ptr());
  EXPECT_TRUE(model->conv->weight.grad().defined());
  EXPECT_EQ(model.parameters().size(), net->parameters().size());
  model.zero_grad();
  EXPECT_FALSE(net->conv->weight.grad().defined());
  model.eval();
  EXPECT_FALSE(net->is_training());
  model.train();
  EXPECT_TRUE(net->is_training());
  EXPECT_TRUE(torch::equal(prepare_model(net.ptr())(data.images), net(data.images)));
}

TEST(PrepareModel, RefusesWhatItCannotTrainAndBadOptions) {
  EXPECT_THAT(message_of<InvalidArgument>([] { prepare_model(SmallNet(nullptr)); }), HasSubstr("no model"));
  EXPECT_THAT(message_of<InvalidArgument>([] { prepare_model(std::shared_ptr<SmallNetImpl>()); }),
              HasSubstr("no model"));
  EXPECT_THAT(message_of<InvalidArgument>(
                  [] { prepare_model(torch::nn::Sequential(torch::nn::ReLU()), {.bucket_cap_bytes = 0}); }),
              AllOf(HasSubstr("no parameter that requires a gradient"), HasSubstr("bucket_cap_bytes of 0")));
  SmallNet frozen;
  for (torch::Tensor& parameter : frozen->parameters()) parameter.set_requires_grad(false);
  EXPECT_THROW(prepare_model(frozen), InvalidArgument);
  frozen->fc->bias.set_requires_grad(true);
  prepare_model(frozen);
}

TEST(PrepareModel, SaysOnEveryRankHowModelsDiffer) {
  run_ranks(3, [](int rank) {
    const torch::nn::Sequential net(torch::nn::Linear(4, 3), torch::nn::Linear(3, rank == 2 ? 5 : 2));
    EXPECT_THAT(message_of<InvalidArgument>([&] { prepare_model(net); }),
                AllOf(HasSubstr("rank 0 has parameter \"1.weight\" (Float [2, 3])"),
                      HasSubstr("rank 2 has parameter \"1.weight\" (Float [5, 3])")));
  });
  run_ranks(2, [](int rank) {
    torch::nn::Sequential net(torch::nn::Linear(4, 3));
    if (rank == 1) net->push_back(torch::nn::Linear(3, 2));
    EXPECT_THAT(message_of<InvalidArgument>([&] { prepare_model(net); }),
                AllOf(HasSubstr("rank 0 has nothing where rank 1 has parameter \"1.weight\""), HasSubstr("2 and 4")));
  });
  run_ranks(2, [](int rank) {
    torch::nn::Sequential net(torch::nn::Linear(4, 3));
    if (rank == 1) net->parameters()[1].set_requires_grad(false);
    EXPECT_THAT(message_of<InvalidArgument>([&] { prepare_model(net); }),
                HasSubstr("\"0.bias\" (Float [3], without a gradient)"));
  });
}

TEST(AKilledRank, EndsTheBackwardPassesOfTheOthersAndTheyCanGoOnWithoutIt) {
  constexpr int victim = 1;
  const auto second_store = std::make_shared<SharedStore>();
  const std::vector<int> statuses = statuses_of_ranks(3, [&](int rank) {
    const Data data = make_data(batch_size);
    PlainNet net;
    {
      auto model = prepare_model(net);
      const auto step = [&] {
        model.zero_grad();
        loss_of(model(data.images), data).backward();
      };
      for (int i = 0; i < 3; ++i) step();
      if (rank == victim) ::raise(SIGKILL);
      EXPECT_ANY_THROW(for (;;) step());  // the group's timeout is longer than this test's
    }
    torch_backend().leave();
    EXPECT_EQ(process_group(), nullptr);
    torch_backend().join(second_store, {.world_rank = rank / 2, .world_size = 2}, {});
    const Data share = share_of(data, rank / 2, 2);
    auto model = prepare_model(net);
    model.zero_grad();
    loss_of(model(share.images), share).backward();
    EXPECT_TRUE(same_on_all_ranks(flat_gradients(*net)));
  });
  EXPECT_TRUE(WIFSIGNALED(statuses[victim]));
  EXPECT_EQ(statuses[0], 0);
  EXPECT_EQ(statuses[2], 0);
}

}  // namespace
}  // namespace cadre::train
