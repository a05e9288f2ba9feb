// Collective operations, and the group that they need.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cmath>
#include <csignal>
#include <string>
#include <vector>

#include "cadre/train_torch.h"
#include "ranks.h"
#include "support/message_of.h"
#include "torch/distributed/process_group.h"

namespace cadre::train {
namespace {

using namespace test_support;
using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Collectives, CombineCopyAndGatherTheRanksTensors) {
  for (const int world_size : {2, 4}) {
    run_ranks(world_size, [&](int rank) {
      const auto reduced = [&](ReduceOp op) {
        torch::Tensor tensor = torch::tensor({1.0 + rank, -1.0 - rank});
        all_reduce(tensor, op);
        return tensor;
      };
      const double n = world_size;
      const double factorial = std::tgamma(n + 1);
      EXPECT_TRUE(torch::equal(reduced(ReduceOp::sum), torch::tensor({n * (n + 1) / 2, -n * (n + 1) / 2})));
      EXPECT_TRUE(torch::equal(reduced(ReduceOp::mean), torch::tensor({(n + 1) / 2, -(n + 1) / 2})));
      EXPECT_TRUE(torch::equal(reduced(ReduceOp::min), torch::tensor({1.0, -n})));
      EXPECT_TRUE(torch::equal(reduced(ReduceOp::max), torch::tensor({n, -1.0})));
      EXPECT_TRUE(torch::equal(reduced(ReduceOp::product), torch::tensor({factorial, factorial})));

      torch::Tensor copied = torch::full({3}, rank, torch::kLong);
      broadcast(copied, world_size - 1);
      EXPECT_TRUE(torch::equal(copied, torch::full({3}, world_size - 1, torch::kLong)));

      const std::vector<torch::Tensor> gathered = all_gather(torch::full({2, 2}, rank, torch::kByte));
      ASSERT_EQ(gathered.size(), static_cast<std::size_t>(world_size));
      for (int other = 0; other < world_size; ++other) {
        EXPECT_TRUE(torch::equal(gathered[other], torch::full({2, 2}, other, torch::kByte)));
      }
    });
  }
}

TEST(Collectives, ReduceScatterGivesEachRankItsRowsOfTheResult) {
  for (const int world_size : {2, 4}) {
    run_ranks(world_size, [&](int rank) {
      // Rank r has r + row in each row.
      const torch::Tensor rows =
          (torch::arange(2 * world_size) + rank).to(torch::kDouble).view({-1, 1}).expand({-1, 3});
      const torch::Tensor own = torch::arange(2 * rank, 2 * rank + 2).to(torch::kDouble).view({-1, 1}).expand({-1, 3});
      const double others = world_size * (world_size - 1) / 2.;
      EXPECT_TRUE(torch::equal(reduce_scatter(rows), own * world_size + others));
      EXPECT_TRUE(torch::equal(reduce_scatter(rows, ReduceOp::mean), own + others / world_size));
      EXPECT_TRUE(torch::equal(reduce_scatter(rows, ReduceOp::max), own + world_size - 1));
      EXPECT_THAT(message_of<InvalidArgument>([&] { reduce_scatter(torch::zeros(2 * world_size + 1)); }),
                  HasSubstr("which must get equally many rows"));
    });
  }
  EXPECT_TRUE(torch::equal(reduce_scatter(torch::arange(3)), torch::arange(3)));
}

TEST(Collectives, GatherGivesAllTensorsToOneRank) {
  run_ranks(3, [](int rank) {
    const std::vector<torch::Tensor> gathered = gather(torch::full({2}, rank), 1);
    ASSERT_EQ(gathered.size(), rank == 1 ? 3u : 0u);
    for (std::size_t i = 0; i < gathered.size(); ++i)
      EXPECT_TRUE(torch::equal(gathered[i], torch::full({2}, static_cast<std::int64_t>(i))));
    EXPECT_THROW(gather(torch::zeros(1), 3), InvalidArgument);
  });
  EXPECT_TRUE(torch::equal(gather(torch::arange(3)).at(0), torch::arange(3)));
}

TEST(Collectives, ATensorGoesFromOneRankToAnother) {
  run_ranks(3, [](int rank) {
    torch::Tensor got = torch::zeros({2, 3});
    torch::Tensor column = got.select(1, 1);
    if (rank == 0) send(torch::tensor({1.F, 2.F}), 2);
    if (rank == 0) send(torch::tensor({3.F, 4.F}), 2);
    if (rank == 2) {
      recv(column, 0);
      EXPECT_TRUE(torch::equal(column, torch::tensor({1.F, 2.F})));
      recv(column, 0);
      EXPECT_TRUE(torch::equal(got, torch::tensor({{0.F, 3.F, 0.F}, {0.F, 4.F, 0.F}})));
    }
    EXPECT_THAT(message_of<InvalidArgument>([&] { send(got, rank); }), HasSubstr("is this one itself"));
    EXPECT_THAT(message_of<InvalidArgument>([&] { recv(got, 3); }), HasSubstr("no rank 3 in a world of 3"));
  });
}

// Gloo would end a process, or give values that no rank has sent.
TEST(Collectives, OfRanksThatCallDifferentThingsAreAnErrorOnAllAndTheGroupGoesOn) {
  run_ranks(3, [](int rank) {
    const bool is_odd = rank == 1;
    torch::Tensor rows = torch::ones(is_odd ? 6 : 4);
    EXPECT_THAT(message_of<InvalidArgument>([&] { all_gather(rows); }),
                AllOf(HasSubstr("all_gather of rank " + std::to_string(rank)),
                      HasSubstr("ranks 0, 2: all_gather of Float of the shape [4]"),
                      HasSubstr("rank 1: all_gather of Float of the shape [6]")));
    EXPECT_THROW(broadcast(rows), InvalidArgument);
    EXPECT_THROW(all_reduce(rows), InvalidArgument);
    EXPECT_THROW(gather(rows), InvalidArgument);
    torch::Tensor turned = torch::ones(is_odd ? std::vector<std::int64_t>{2, 3} : std::vector<std::int64_t>{3, 2});
    EXPECT_THROW(all_reduce(turned), InvalidArgument);
    torch::Tensor typed = torch::ones(4, is_odd ? torch::kInt : torch::kFloat);
    EXPECT_THAT(message_of<InvalidArgument>([&] { all_reduce(typed); }), HasSubstr("rank 1: all_reduce (sum) of Int"));
    EXPECT_THROW(reduce_scatter(torch::ones(is_odd ? 6 : 3)), InvalidArgument);
    torch::Tensor same = torch::ones(2);
    EXPECT_THAT(message_of<InvalidArgument>([&] { all_reduce(same, is_odd ? ReduceOp::max : ReduceOp::mean); }),
                HasSubstr("rank 1: all_reduce (maximum)"));
    EXPECT_THROW(broadcast(same, rank == 0 ? 0 : 1), InvalidArgument);
    EXPECT_THAT(message_of<InvalidArgument>([&] { is_odd ? broadcast(same) : all_reduce(same); }),
                HasSubstr("rank 1: broadcast (from rank 0) of Float of the shape [2]"));
    EXPECT_TRUE(torch::equal(rows, torch::ones(is_odd ? 6 : 4)));
    EXPECT_TRUE(torch::equal(same, torch::ones(2)));
    all_reduce(same);
    EXPECT_TRUE(torch::equal(same, torch::full({2}, 3.F)));
  });
}

TEST(Collectives, AnotherTensorThanOneExpectsToReceiveIsAnErrorAndTheNextOneComes) {
  run_ranks(2, [](int rank) {
    if (rank == 0) {
      send(torch::ones({2, 3}), 1);
      send(torch::full({6}, 2), 1);
      send(torch::full({6}, 3.F), 1);
      return;
    }
    torch::Tensor got = torch::zeros(6);
    EXPECT_THAT(message_of<InvalidArgument>([&] { recv(got, 0); }),
                AllOf(HasSubstr("rank 0 has sent Float of the shape [2, 3]"), HasSubstr("is Float of the shape [6]")));
    EXPECT_THAT(message_of<InvalidArgument>([&] { recv(got, 0); }), HasSubstr("has sent Long of the shape [6]"));
    EXPECT_TRUE(torch::equal(got, torch::zeros(6)));
    recv(got, 0);
    EXPECT_TRUE(torch::equal(got, torch::full({6}, 3.F)));
  });
}

TEST(Collectives, AreNotComparedWhereTheOptionsSaySo) {
  run_ranks(2,
            [](int rank) {
              torch::Tensor turned =
                  torch::ones(rank == 0 ? std::vector<std::int64_t>{2, 3} : std::vector<std::int64_t>{6});
              all_reduce(turned);
              EXPECT_EQ(turned.sum().item<float>(), 12);
            },
            {{"check_collectives", false}});
}

TEST(Collectives, TensorsOfTypesThatBackendsLackAreMovedAndNotCombined) {
  run_ranks(2, [](int rank) {
    for (const torch::ScalarType type : {torch::kShort, torch::kComplexFloat, torch::kComplexDouble}) {
      const auto of_rank = [&](int of) { return torch::full({2, 3}, of + 1, torch::kInt).to(type); };
      torch::Tensor tensor = of_rank(rank);
      EXPECT_TRUE(torch::equal(all_gather(tensor).at(1), of_rank(1)));
      EXPECT_TRUE(torch::equal(all_gather(tensor[0][0]).at(1), of_rank(1)[0][0]));
      const std::vector<torch::Tensor> gathered = gather(tensor, 1);
      if (rank == 1) {
        EXPECT_TRUE(torch::equal(gathered.at(0), of_rank(0)));
        send(tensor, 0);
      } else {
        recv(tensor, 1);
        EXPECT_TRUE(torch::equal(tensor, of_rank(1)));
      }
      broadcast(tensor, 1);
      EXPECT_TRUE(torch::equal(tensor, of_rank(1)));
    }
    torch::Tensor shorts = torch::ones(2, torch::kShort);
    EXPECT_THAT(message_of<InvalidArgument>([&] { all_reduce(shorts); }), HasSubstr("Short tensors are not combined"));
    EXPECT_THROW(reduce_scatter(shorts), InvalidArgument);
    torch::Tensor last = torch::ones(1);
    all_reduce(last);
    EXPECT_EQ(last.item<float>(), 2) << "the group can be used";
  });
}

TEST(Collectives, ComplexNumbersHaveASumAndAMeanAndMayBeConjugateViews) {
  run_ranks(2, [](int rank) {
    const torch::Tensor own = torch::complex(torch::ones(2), torch::full({2}, 1.F + static_cast<float>(rank)));
    const torch::Tensor sum = torch::complex(torch::full({2}, 2.F), torch::full({2}, 3.F));
    torch::Tensor tensor = own.clone();
    all_reduce(tensor);
    EXPECT_TRUE(torch::equal(tensor, sum));
    tensor = own.clone().conj();
    all_reduce(tensor, ReduceOp::mean);
    EXPECT_TRUE(torch::equal(tensor.resolve_conj(), sum.conj().resolve_conj() / 2));
    EXPECT_TRUE(torch::equal(reduce_scatter(own), sum.slice(0, 0, 1)));
    EXPECT_TRUE(torch::equal(all_gather(own.conj()).at(static_cast<std::size_t>(rank)), own.conj().resolve_conj()));
    EXPECT_THAT(message_of<InvalidArgument>([&] { all_reduce(tensor, ReduceOp::product); }),
                HasSubstr("ComplexFloat tensors have a sum and a mean only"));
  });
}

TEST(Collectives, ASumOfTruthValuesIsTrueWhereOneIs) {
  run_ranks(2, [](int rank) {
    torch::Tensor either = torch::tensor({1, rank, 0}, torch::kByte).to(torch::kBool);
    all_reduce(either);
    EXPECT_TRUE(torch::equal(either.view(torch::kByte), torch::tensor({1, 1, 0}, torch::kByte)));
  });
}

TEST(Collectives, TakeViewsAndParameters) {
  run_ranks(2, [](int rank) {
    torch::Tensor base = torch::zeros({3, 4});
    torch::Tensor column = base.select(1, 2);
    column.fill_(rank + 1);
    all_reduce(column);
    EXPECT_TRUE(torch::equal(base.select(1, 2), torch::full({3}, 3.F)));
    EXPECT_EQ(base.sum().item<float>(), 9) << "nothing else has changed";
    torch::nn::Linear linear(2, 2);
    broadcast(linear->weight);
    EXPECT_TRUE(linear->weight.requires_grad());
    EXPECT_TRUE(torch::equal(all_gather(linear->weight)[1], linear->weight));
    EXPECT_TRUE(torch::equal(all_gather(base.t())[0], base.t()));
  });
}

TEST(Collectives, InAWorldOfOneLeaveEverythingAsItIs) {
  torch::Tensor tensor = torch::tensor({1, 2});
  all_reduce(tensor);
  broadcast(tensor);
  EXPECT_TRUE(torch::equal(tensor, torch::tensor({1, 2})));
  EXPECT_TRUE(torch::equal(all_gather(tensor).at(0), tensor));
  EXPECT_EQ(process_group(), nullptr);
  EXPECT_EQ(get_device().is_cuda(), torch::cuda::is_available());
}

TEST(Collectives, RefuseWhatTheyCannotDo) {
  torch::Tensor undefined;
  torch::Tensor integers = torch::tensor({1, 2});
  EXPECT_THROW(all_reduce(undefined), InvalidArgument);
  EXPECT_THROW(broadcast(undefined), InvalidArgument);
  EXPECT_THROW(all_gather(undefined), InvalidArgument);
  EXPECT_THAT(message_of<InvalidArgument>([&] { all_reduce(integers, ReduceOp::mean); }), HasSubstr("Long"));
  EXPECT_THAT(message_of<InvalidArgument>([&] { broadcast(integers, 1); }), HasSubstr("no rank 1 in a world of 1"));
}

TEST(Collectives, EndWithAnErrorWhenARankIsKilled) {
  const std::vector<int> statuses = statuses_of_ranks(3, [](int rank) {
    torch::Tensor tensor = torch::ones(1000);
    all_reduce(tensor);
    if (rank == 2) ::raise(SIGKILL);
    // The group's timeout is longer than this test's.
    EXPECT_THAT(message_of<EngineError>([&] { all_reduce(tensor); }), HasSubstr("all_reduce of rank"));
    EXPECT_THAT(message_of<EngineError>([&] { MeanMetric().compute(); }),
                HasSubstr("no more use after its first error: all_reduce of rank"));
  });
  EXPECT_EQ(statuses[0], 0);
  EXPECT_EQ(statuses[1], 0);
  EXPECT_TRUE(WIFSIGNALED(statuses[2]));
}

TEST(Collectives, EndWithAnErrorWhenARankStallsForLongerThanTheGroupsTimeout) {
  const std::vector<int> statuses = statuses_of_ranks(
      2,
      [](int rank) {
        torch::Tensor tensor = torch::ones(1000);
        all_reduce(tensor);
        if (rank == 1) {
          ::raise(SIGSTOP);  // until the other rank has tested it
          ::_exit(0);
        }
        EXPECT_THAT(message_of<EngineError>([&] { all_reduce(tensor); }), HasSubstr("all_reduce of rank 0"));
        ::kill(0, SIGCONT);
      },
      {{"timeout_s", 1}});
  EXPECT_EQ(statuses[0], 0);
}

TEST(MeanMetric, IsTheWeightedMeanOverAllRanks) {
  for (const int world_size : {2, 4}) {
    run_ranks(world_size, [&](int rank) {
      MeanMetric metric;
      double sum = 0;
      double weight = 0;
      for (int other = 0; other < world_size; ++other) {
        for (int i = 0; i <= other; ++i) {  // a different number of values on each rank
          if (other == rank) metric.update(0.1 * i + other, i + 1);
          sum += (0.1 * i + other) * (i + 1);
          weight += i + 1;
        }
      }
      EXPECT_NEAR(metric.compute(), sum / weight, 1e-12);
      EXPECT_NEAR(metric.compute(), sum / weight, 1e-12) << "asking changes nothing";
      metric.reset();
      if (rank == 1) metric.update(torch::tensor({1, 2, 6}));
      EXPECT_EQ(metric.compute(), 3);
      metric.reset();
      EXPECT_TRUE(std::isnan(metric.compute()));
    });
  }
}

TEST(MeanMetric, TakesTensorsOfAnyRealType) {
  MeanMetric metric;
  metric.update(torch::tensor({{1.0, 2.0}, {3.0, 4.0}}, torch::requires_grad()), 2);
  metric.update(torch::tensor(true));
  metric.update(torch::full({1000}, 60'000, torch::kHalf), 0);
  metric.update(7);
  EXPECT_EQ(metric.compute(), (20.0 + 1 + 7) / 10);
  metric.reset();
  metric.update(torch::full({1000}, 60'000, torch::kHalf));
  EXPECT_NEAR(metric.compute(), 60'000, 20) << "the sum is none of a half's values";
  EXPECT_TRUE(std::isnan(MeanMetric().compute()));
}

TEST(MeanMetric, RefusesWhatHasNoMean) {
  MeanMetric metric;
  EXPECT_THROW(metric.update(1, -1), InvalidArgument);
  EXPECT_THROW(metric.update(1, NAN), InvalidArgument);
  EXPECT_THROW(metric.update(torch::ones(2), INFINITY), InvalidArgument);
  EXPECT_THROW(metric.update(torch::Tensor()), InvalidArgument);
  EXPECT_THROW(metric.update(torch::ones(2, torch::kComplexFloat)), InvalidArgument);
  EXPECT_TRUE(std::isnan(metric.compute()));
}

TEST(TorchGroupBackend, RefusesOptionsAllAtOnce) {
  const Config options{{"backend", "mpi"}, {"timeout_s", 0}, {"init_method", "file"}, {"backends", "gloo"}};
  EXPECT_THAT(message_of<InvalidArgument>([&] { torch_backend().join(nullptr, {}, options); }),
              AllOf(HasSubstr("no backend \"mpi\""), HasSubstr("\"timeout_s\": 0"), HasSubstr("\"file\""),
                    HasSubstr("\"backends\": there is no such option")));
  for (const Value& timeout : {Value("30"), Value(-1), Value(NAN), Value(INFINITY)}) {
    EXPECT_THROW(torch_backend().join(nullptr, {}, {{"timeout_s", timeout}}), InvalidArgument);
  }
  EXPECT_THROW(torch_backend().join(nullptr, {.world_rank = 2, .world_size = 2}, {}), InvalidArgument);
  if (torch::cuda::is_available()) GTEST_SKIP() << "there is a GPU";
  EXPECT_THAT(message_of<InvalidArgument>([&] { torch_backend().join(nullptr, {}, {{"backend", "nccl"}}); }),
              HasSubstr("nccl needs a GPU"));
}

TEST(TorchGroupBackend, AWorldOfOneNeedsNoStore) {
  torch_backend().join(nullptr, {}, {{"backend", ""}, {"timeout_s", 1.5}, {"init_method", "tcp"}});
  EXPECT_EQ(process_group(), nullptr);
  torch_backend().leave();
  torch_backend().leave();
}

TEST(TorchGroupBackend, WaitsForTheOthersUntilItsTimeout) {
  EXPECT_THAT(message_of<Error>([&] {
                torch_backend().join(std::make_shared<SharedStore>(), {.world_rank = 0, .world_size = 2},
                                     {{"timeout_s", 0.05}});
              }),
              HasSubstr("nobody has set"));
  EXPECT_EQ(process_group(), nullptr);
}

// A rank that has connected to all others must not leave before they have connected, too.
TEST(TorchGroupBackend, AGroupOfWhichNobodyWantsAnythingIsFormed) {
  for (int i = 0; i < 10; ++i) run_ranks(4, [](int) {});
}

TEST(TorchGroupBackend, ConnectionsOfDeadRanksAreNoSignal) {
  run_ranks(2, [](int) {
    struct sigaction action{};
    ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &action), 0);
    EXPECT_EQ(action.sa_handler, SIG_IGN);
  });
}

TEST(TorchGroupBackend, OnOneMachineGlooListensOnTheLoopbackOnly) {
  run_ranks(2, [](int) {
    EXPECT_EQ(process_group()->getSize(), 2);
    EXPECT_EQ(process_group()->getBackendName(), "gloo");
    // Every socket of this process that has a local address has the loopback's.
    int sockets = 0;
    for (int descriptor = 0; descriptor < 256; ++descriptor) {
      sockaddr_storage address{};
      socklen_t size = sizeof(address);
      if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) continue;
      if (address.ss_family != AF_INET && address.ss_family != AF_INET6) continue;
      ASSERT_EQ(address.ss_family, AF_INET);
      EXPECT_EQ(ntohl(reinterpret_cast<const sockaddr_in&>(address).sin_addr.s_addr), INADDR_LOOPBACK);
      ++sockets;
    }
    EXPECT_GE(sockets, 1);
  });
}

}  // namespace
}  // namespace cadre::train
