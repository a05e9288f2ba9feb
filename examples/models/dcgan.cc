#include "models/dcgan.h"

namespace models {

namespace nn = torch::nn;

namespace {

constexpr std::int64_t noise_size = 100;

nn::ConvTranspose2d deconvolution(std::int64_t in, std::int64_t out, std::int64_t stride, std::int64_t padding) {
  return nn::ConvTranspose2d(nn::ConvTranspose2dOptions(in, out, 4).stride(stride).padding(padding).bias(false));
}

nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t stride, std::int64_t padding) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, 4).stride(stride).padding(padding).bias(false));
}

nn::ReLU relu() { return nn::ReLU(nn::ReLUOptions().inplace(true)); }

nn::LeakyReLU leaky_relu() { return nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(0.2).inplace(true)); }

// Draws all weights from normal distributions with deviation 0.02 and mean 0, or mean 1 for the scales of batch norm.
void draw_weights(nn::Module& network) {
  for (const std::shared_ptr<nn::Module>& module : network.modules(/*include_self=*/false)) {
    if (auto* deconvolution = module->as<nn::ConvTranspose2d>()) nn::init::normal_(deconvolution->weight, 0, 0.02);
    if (auto* convolution = module->as<nn::Conv2d>()) nn::init::normal_(convolution->weight, 0, 0.02);
    if (auto* norm = module->as<nn::BatchNorm2d>()) {
      nn::init::normal_(norm->weight, 1, 0.02);
      nn::init::zeros_(norm->bias);
    }
  }
}

torch::Tensor loss_where_real(const torch::Tensor& probabilities) {
  return torch::binary_cross_entropy(probabilities, torch::ones_like(probabilities));
}

torch::Tensor loss_where_generated(const torch::Tensor& probabilities) {
  return torch::binary_cross_entropy(probabilities, torch::zeros_like(probabilities));
}

}  // namespace

GeneratorImpl::GeneratorImpl() {
  main = register_module(
      "main", nn::Sequential(deconvolution(noise_size, 128, 1, 0), nn::BatchNorm2d(128), relu(),
                             deconvolution(128, 64, 2, 1), nn::BatchNorm2d(64), relu(), deconvolution(64, 32, 2, 1),
                             nn::BatchNorm2d(32), relu(), deconvolution(32, 1, 2, 1), nn::Tanh()));
  draw_weights(*this);
}

DiscriminatorImpl::DiscriminatorImpl() {
  main = register_module("main", nn::Sequential(convolution(1, 32, 2, 1), leaky_relu(),                          //
                                                convolution(32, 64, 2, 1), nn::BatchNorm2d(64), leaky_relu(),    //
                                                convolution(64, 128, 2, 1), nn::BatchNorm2d(128), leaky_relu(),  //
                                                convolution(128, 1, 1, 0), nn::Sigmoid()));
  draw_weights(*this);
}

torch::Tensor draw_noise(std::int64_t count) { return torch::randn({count, noise_size, 1, 1}); }

torch::optim::Adam make_optimizer(nn::Module& network, double learning_rate) {
  return torch::optim::Adam(network.parameters(), torch::optim::AdamOptions(learning_rate).betas({0.5, 0.999}));
}

GanStep train_gan(Generator& generator, torch::optim::Optimizer& generator_optimizer, Discriminator& discriminator,
                  torch::optim::Optimizer& discriminator_optimizer, const torch::Tensor& real_images) {
  const torch::Tensor generated = generator(draw_noise(real_images.size(0)));

  discriminator_optimizer.zero_grad();
  const torch::Tensor discriminator_loss =
      loss_where_real(discriminator(real_images)) + loss_where_generated(discriminator(generated.detach()));
  discriminator_loss.backward();
  discriminator_optimizer.step();

  generator_optimizer.zero_grad();
  const torch::Tensor generator_loss = loss_where_real(discriminator(generated));
  // Propagates through the discriminator without computing its gradients, which would double the cost and are not
  // needed.
  const std::vector<torch::Tensor> parameters = generator->parameters();
  generator_loss.backward({}, std::nullopt, false, torch::TensorList(parameters));
  generator_optimizer.step();

  return {generated.detach(), generator_loss.item<double>(), discriminator_loss.item<double>()};
}

}  // namespace models
