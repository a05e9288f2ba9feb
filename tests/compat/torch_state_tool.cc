// The C++ half of torch_state_test.py: trains, saves and loads the same model as the Python half, with the same names.
// `torch_state_tool save <file> <optimizer>`, `torch_state_tool load <file> <optimizer|none> <values file>`,
// `torch_state_tool copy <file> <new file>`, `torch_state_tool save_dict <file>`, `torch_state_tool load_dict <file>
// <values file>`, `torch_state_tool average <file or none> <new file> <decay or 0> <0|1>`.
#include <torch/torch.h>

#include <iostream>
#include <limits>
#include <memory>
#include <string>

#include "cadre/torch.h"
#include "cadre/torch/save_dict.h"
#include "torch/pt_file.h"

namespace {

struct NetImpl : torch::nn::Module {
  torch::Tensor forward(const torch::Tensor& images) { return fc(torch::relu(norm(conv(images))).flatten(1)); }

  torch::nn::Conv2d conv = register_module("conv", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 2, 3).bias(false)));
  torch::nn::BatchNorm2d norm = register_module("norm", torch::nn::BatchNorm2d(2));
  torch::nn::Linear fc = register_module("fc", torch::nn::Linear(72, 10));
};
TORCH_MODULE(Net);

// Uses the same options as the Python half.
std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& name, const Net& model) {
  using namespace torch::optim;
  const auto parameters = model->parameters();
  if (name == "SGD") return std::make_unique<SGD>(parameters, SGDOptions(0.1).momentum(0.9).weight_decay(1e-4));
  if (name == "Adam") return std::make_unique<Adam>(parameters, AdamOptions(0.01).amsgrad(true));
  if (name == "AdamW") return std::make_unique<AdamW>(parameters, AdamWOptions(0.01));
  if (name == "RMSprop")
    return std::make_unique<RMSprop>(parameters, RMSpropOptions(0.01).momentum(0.5).centered(true));
  if (name == "LBFGS")
    return std::make_unique<LBFGS>(parameters,
                                   LBFGSOptions(0.5).max_iter(3).history_size(4).line_search_fn("strong_wolfe"));
  if (name == "Adagrad") return std::make_unique<Adagrad>(parameters, AdagradOptions(0.01));
  return nullptr;
}

void train_step(Net& model, torch::optim::Optimizer& optimizer) {
  const torch::Tensor images = torch::linspace(-1, 1, 4 * 64).reshape({4, 1, 8, 8});
  optimizer.step([&] {
    optimizer.zero_grad();
    torch::Tensor loss = torch::nn::functional::cross_entropy(model(images), torch::arange(4));
    loss.backward();
    return loss;
  });
}

int save(const std::string& file, const std::string& optimizer_name) {
  torch::manual_seed(3);
  Net model;
  const auto optimizer = make_optimizer(optimizer_name, model);
  for (int i = 0; i < 2; ++i) train_step(model, *optimizer);
  cadre::save_state(file, model, *optimizer, 2);
  train_step(model, *optimizer);
  cadre::save_state(file + ".next", model, *optimizer, 3);  // the result that the other half must reach
  return 0;
}

// Loads, trains one step if there is an optimizer, and saves the values for the other half to compare.
int load(const std::string& file, const std::string& optimizer_name, const std::string& values_file) {
  Net model;
  std::int64_t step = 0;
  if (const auto optimizer = make_optimizer(optimizer_name, model)) {
    step = cadre::load_state(file, model, *optimizer);
    train_step(model, *optimizer);
    cadre::save_state(values_file, model, *optimizer, step);
  } else {
    step = cadre::load_state(file, model);
    cadre::save_state(values_file, model, step);
  }
  std::cout << step << "\n";
  return 0;
}

// Reads any file and writes it again.
int copy(const std::string& file, const std::string& target) {
  cadre::pt::write_file(target, cadre::pt::read_file(file));
  return 0;
}

// Saves a dictionary as programs in Python do, and beside it what is drawn then.
int save_all(const std::string& file) {
  torch::manual_seed(3);
  Net model;
  const auto optimizer = make_optimizer("Adam", model);
  train_step(model, *optimizer);
  cadre::save_dict(file,
                   {{"epoch", 3},
                    {"best", 0.25},
                    {"names", cadre::list("a", "b")},
                    {"average", torch::arange(3)},
                    {"states", cadre::SavedItems{{"model_state_dict", model}, {"optimizer_state_dict", *optimizer}}},
                    {"random", cadre::RandomStates()}});
  cadre::save_dict(file + ".drawn", {{"drawn", torch::rand(4)}});
  return 0;
}

// Trains with averages and a scaler, from a file of such a training if there is one, and saves everything.
int average(const std::string& from, const std::string& to, double decay, bool use_buffers) {
  torch::manual_seed(3);
  Net model;
  const auto optimizer = make_optimizer("SGD", model);
  cadre::AveragedWeights averages(
      model, {.decay = decay > 0 ? std::optional(decay) : std::nullopt, .use_buffers = use_buffers});
  cadre::GradScaler scaler({.init_scale = 1024, .growth_interval = 2});
  if (from != "none")
    cadre::load_dict(from, {{"model", model}, {"optimizer", *optimizer}, {"averages", averages}, {"scaler", scaler}});
  for (int i = 0; i < 4; ++i) {
    const torch::Tensor images = torch::linspace(-1, 1, 4 * 64).reshape({4, 1, 8, 8});
    optimizer->zero_grad();
    torch::Tensor loss = torch::nn::functional::cross_entropy(model(images), torch::arange(4));
    if (i == 2) loss = loss * std::numeric_limits<float>::infinity();
    scaler.scale(loss).backward();
    scaler.unscale_(*optimizer);
    if (scaler.step(*optimizer) == (i == 2)) throw cadre::Error("a step was taken, or left out, that should not be");
    scaler.update();
    averages.update_parameters(model);
  }
  cadre::save_dict(to, {{"model", model}, {"optimizer", *optimizer}, {"averages", averages}, {"scaler", scaler}});
  return 0;
}

// Loads one that Python has saved, and saves it with what is drawn then, and the model after one more step.
int load_all(const std::string& file, const std::string& values_file) {
  Net model;
  const auto optimizer = make_optimizer("Adam", model);
  std::int64_t epoch = 0;
  double best = 0;
  std::vector<std::string> names;
  torch::Tensor average;
  cadre::load_dict(file,
                   {{"epoch", epoch},
                    {"best", best},
                    {"names", names},
                    {"average", average},
                    {"states", cadre::LoadedItems{{"model_state_dict", model}, {"optimizer_state_dict", *optimizer}}},
                    {"random", cadre::RandomStates()}});
  const torch::Tensor drawn = torch::rand(4);
  train_step(model, *optimizer);
  cadre::save_dict(values_file, {{"epoch", epoch},
                                 {"best", best},
                                 {"name", names.at(1)},
                                 {"average", average},
                                 {"drawn", drawn},
                                 {"model", model}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  try {
    if (command == "save" && argc == 4) return save(argv[2], argv[3]);
    if (command == "load" && argc == 5) return load(argv[2], argv[3], argv[4]);
    if (command == "copy" && argc == 4) return copy(argv[2], argv[3]);
    if (command == "average" && argc == 6)
      return average(argv[2], argv[3], std::stod(argv[4]), std::string(argv[5]) == "1");
    if (command == "save_dict" && argc == 3) return save_all(argv[2]);
    if (command == "load_dict" && argc == 4) return load_all(argv[2], argv[3]);
  } catch (const cadre::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  std::cerr << "usage: torch_state_tool save|load|copy|save_dict|load_dict|average <file> …\n";
  return 2;
}
