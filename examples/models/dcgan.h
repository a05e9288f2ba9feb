// DCGAN, two networks trained against each other: a generator of images, and a discriminator that distinguishes them
// from real ones (Radford et al., 2015, https://arxiv.org/abs/1511.06434). Images are float [N, 1, 32, 32], with pixels
// from -1 to 1. The networks are the same as in Ray Tune's example pbt_dcgan_mnist, including the names of their
// parameters.
#pragma once

#include <torch/torch.h>

#include <cstdint>

namespace models {

// Takes N samples from draw_noise, returns N images.
struct GeneratorImpl : torch::nn::Module {
  GeneratorImpl();
  torch::Tensor forward(const torch::Tensor& noise) { return main->forward(noise); }

  torch::nn::Sequential main;
};
TORCH_MODULE(Generator);

// Takes images, returns the probability that each is real, [N].
struct DiscriminatorImpl : torch::nn::Module {
  DiscriminatorImpl();
  torch::Tensor forward(const torch::Tensor& images) { return main->forward(images).flatten(); }

  torch::nn::Sequential main;
};
TORCH_MODULE(Discriminator);

// Returns normally distributed noise for a generator, [count, 100, 1, 1].
torch::Tensor draw_noise(std::int64_t count);

// Returns an Adam optimizer for either network, with DCGAN's beta1 of 0.5.
torch::optim::Adam make_optimizer(torch::nn::Module& network, double learning_rate);

struct GanStep {
  torch::Tensor generated;  // the images that the generator was trained with, as many as the real ones
  double generator_loss = 0;
  double discriminator_loss = 0;
};

// Trains the discriminator on one batch of real images and as many generated ones, and then the generator on the
// discriminator's output for the generated ones. Each optimizer has the parameters of its network.
GanStep train_gan(Generator& generator, torch::optim::Optimizer& generator_optimizer, Discriminator& discriminator,
                  torch::optim::Optimizer& discriminator_optimizer, const torch::Tensor& real_images);

}  // namespace models
