// The learner of the program with libtorch: the network of examples/pbt_mnist, on random images.
#include <cadre/torch.h>
#include <torch/torch.h>

#include "learner.h"

namespace cadre::bench {
namespace {

constexpr std::int64_t batch_size = 64;

struct ConvNetImpl : torch::nn::Module {
  // Takes images [N, 1, 28, 28], returns logarithms of probabilities [N, 10].
  torch::Tensor forward(const torch::Tensor& images) {
    const torch::Tensor features = torch::relu(torch::max_pool2d(conv1(images), 3));
    return torch::log_softmax(fc(features.flatten(1)), 1);
  }

  torch::nn::Conv2d conv1 = register_module("conv1", torch::nn::Conv2d(1, 3, 3));
  torch::nn::Linear fc = register_module("fc", torch::nn::Linear(192, 10));
};
TORCH_MODULE(ConvNet);

}  // namespace

bool with_torch() { return true; }

struct Learner::State {
  explicit State(double lr) : optimizer(model->parameters(), torch::optim::SGDOptions(lr)) {}

  ConvNet model;
  torch::optim::SGD optimizer;
  torch::Tensor images = torch::randn({batch_size, 1, 28, 28});
  torch::Tensor labels = torch::randint(10, {batch_size}, torch::kLong);
};

Learner::Learner(double lr) {
  at::set_num_threads(1);  // as in workers with one CPU; plain processes would use more
  state_ = std::make_unique<State>(lr);
}
Learner::~Learner() = default;

void Learner::train(std::chrono::duration<double> cpu_time) {
  const auto end = thread_cpu_time() + cpu_time;
  do {
    state_->optimizer.zero_grad();
    torch::nll_loss(state_->model(state_->images), state_->labels).backward();
    state_->optimizer.step();
  } while (thread_cpu_time() < end);
}

void Learner::save(const std::filesystem::path& file) const { save_state(file, state_->model, state_->optimizer, 0); }
void Learner::load(const std::filesystem::path& file) { load_state(file, state_->model, state_->optimizer); }

}  // namespace cadre::bench
