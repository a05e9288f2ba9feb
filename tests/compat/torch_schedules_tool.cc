// The C++ half of torch_schedules_test.py: takes steps of schedules, and saves and loads them with an optimizer.
//
//   torch_schedules_tool <cases as JSON> <results as JSON>
//
// A case is {"optimizer", "lrs", "schedule", "steps"}, and may have "load" and "save", files of a dictionary with
// "optimizer" and "scheduler" before the first step and after the last. A schedule is {"name", …}, with the names of
// Python's arguments; that of ReduceLROnPlateau gets the "metrics" of the case. The result is the rates, and momenta,
// at the beginning and after each step.
#include <torch/torch.h>

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "cadre/error.h"
#include "cadre/torch/save_dict.h"

namespace {

using namespace cadre;

std::vector<torch::optim::OptimizerParamGroup> groups_of(const Config& one) {
  std::vector<torch::optim::OptimizerParamGroup> groups;
  for (const double lr : one.get<std::vector<double>>("lrs")) {
    const std::vector<torch::Tensor> parameters{torch::zeros(1, torch::requires_grad())};
    auto options = std::make_unique<torch::optim::SGDOptions>(lr);
    options->momentum(0.9);
    groups.emplace_back(parameters, std::move(options));
  }
  return groups;
}

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const Config& one) {
  if (one.get<std::string>("optimizer") == "SGD")
    return std::make_unique<torch::optim::SGD>(groups_of(one), torch::optim::SGDOptions(0.1).momentum(0.9));
  const double lr = one.get<std::vector<double>>("lrs").front();
  return std::make_unique<torch::optim::Adam>(std::vector{torch::zeros(1, torch::requires_grad())},
                                              torch::optim::AdamOptions(lr));
}

optim::Schedule to_schedule(const Config& one);

std::vector<optim::Schedule> to_schedules(const Config& one) {
  std::vector<optim::Schedule> schedules;
  for (const Value& part : one.get<List>("schedulers")) schedules.push_back(to_schedule(Config(part)));
  return schedules;
}

optim::Schedule to_schedule(const Config& one) {
  const auto name = one.get<std::string>("name");
  const auto number = [&](const char* key, double otherwise) { return one.get<double>(key, otherwise); };
  const auto integer = [&](const char* key) { return one.get<std::int64_t>(key); };
  if (name == "StepLR") return optim::StepLR{.step_size = integer("step_size"), .gamma = number("gamma", 0.1)};
  if (name == "MultiStepLR")
    return optim::MultiStepLR{.milestones = one.get<std::vector<std::int64_t>>("milestones"),
                              .gamma = number("gamma", 0.1)};
  if (name == "ConstantLR")
    return optim::ConstantLR{.factor = number("factor", 1.0 / 3), .total_iters = integer("total_iters")};
  if (name == "LinearLR")
    return optim::LinearLR{.start_factor = number("start_factor", 1.0 / 3),
                           .end_factor = number("end_factor", 1),
                           .total_iters = integer("total_iters")};
  if (name == "ExponentialLR") return optim::ExponentialLR{.gamma = number("gamma", 0)};
  if (name == "PolynomialLR")
    return optim::PolynomialLR{.total_iters = integer("total_iters"), .power = number("power", 1)};
  if (name == "CosineAnnealingLR")
    return optim::CosineAnnealingLR{.T_max = integer("T_max"), .eta_min = number("eta_min", 0)};
  if (name == "CosineAnnealingWarmRestarts")
    return optim::CosineAnnealingWarmRestarts{
        .T_0 = integer("T_0"), .T_mult = one.get<std::int64_t>("T_mult", 1), .eta_min = number("eta_min", 0)};
  if (name == "OneCycleLR")
    return optim::OneCycleLR{.max_lr = one.get<std::vector<double>>("max_lr"),
                             .total_steps = integer("total_steps"),
                             .pct_start = number("pct_start", 0.3),
                             .anneal_strategy = one.get<std::string>("anneal_strategy", "cos") == "cos"
                                                    ? optim::AnnealStrategy::cos
                                                    : optim::AnnealStrategy::linear,
                             .cycle_momentum = one.get<bool>("cycle_momentum", true),
                             .div_factor = number("div_factor", 25),
                             .three_phase = one.get<bool>("three_phase", false)};
  if (name == "LambdaLR")
    return optim::LambdaLR{.lr_lambda = [](std::int64_t epoch) { return 1.0 / static_cast<double>(epoch + 1); }};
  if (name == "ChainedScheduler") return optim::ChainedScheduler{.schedulers = to_schedules(one)};
  if (name == "SequentialLR")
    return optim::SequentialLR{.schedulers = to_schedules(one),
                               .milestones = one.get<std::vector<std::int64_t>>("milestones")};
  throw InvalidArgument("there is no schedule " + name);
}

List present(torch::optim::Optimizer& optimizer) {
  List numbers;
  for (torch::optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    numbers.emplace_back(group.options().get_lr());
    if (auto* sgd = dynamic_cast<torch::optim::SGDOptions*>(&group.options())) numbers.emplace_back(sgd->momentum());
    if (auto* adam = dynamic_cast<torch::optim::AdamOptions*>(&group.options()))
      numbers.emplace_back(std::get<0>(adam->betas()));
  }
  return numbers;
}

template <class Scheduler, class Step>
Value run(const Config& one, torch::optim::Optimizer& optimizer, Scheduler& scheduler, const Step& step) {
  if (const auto file = one.get<std::string>("load", ""); !file.empty())
    load_dict(file, {{"optimizer", optimizer}, {"scheduler", scheduler}});
  List results;
  results.emplace_back(present(optimizer));
  for (std::int64_t i = 0; i < one.get<std::int64_t>("steps"); ++i) {
    step(i);
    results.emplace_back(present(optimizer));
  }
  if (const auto file = one.get<std::string>("save", ""); !file.empty())
    save_dict(file, {{"optimizer", optimizer}, {"scheduler", scheduler}});
  return results;
}

Value run(const Config& one) {
  const auto optimizer = make_optimizer(one);
  const Config schedule(*one.find("schedule"));
  if (schedule.get<std::string>("name") == "ReduceLROnPlateau") {
    const auto metrics = one.get<std::vector<double>>("metrics");
    optim::ReduceLROnPlateau scheduler(
        *optimizer,
        {.mode = schedule.get<std::string>("mode", "min") == "min" ? Mode::min : Mode::max,
         .factor = schedule.get<double>("factor", 0.1),
         .patience = schedule.get<std::int64_t>("patience", 10),
         .threshold = schedule.get<double>("threshold", 1e-4),
         .threshold_mode = schedule.get<std::string>("threshold_mode", "rel") == "rel" ? optim::ThresholdMode::rel
                                                                                       : optim::ThresholdMode::abs,
         .cooldown = schedule.get<std::int64_t>("cooldown", 0),
         .min_lr = {schedule.get<double>("min_lr", 0.0)}});
    return run(one, *optimizer, scheduler,
               [&](std::int64_t i) { scheduler.step(metrics.at(static_cast<std::size_t>(i))); });
  }
  optim::LRScheduler scheduler(*optimizer, to_schedule(schedule));
  return run(one, *optimizer, scheduler, [&](std::int64_t) { scheduler.step(); });
}

}  // namespace

int main(int, char** argv) {
  List results;
  const Value cases = base::parse_json(base::read_file(argv[1]), argv[1]);
  for (const Value& one : cases.items()) {
    try {
      results.push_back(run(Config(one)));
    } catch (const Error& error) {
      results.emplace_back(Dict{{"error", error.what()}});
    }
  }
  base::write_file(argv[2], to_json(Value(std::move(results))));
}
