// The networks and scores of the examples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "models/dcgan.h"
#include "models/inception_score.h"
#include "models/lenet.h"

namespace {

using namespace models;

std::int64_t parameter_count(const torch::nn::Module& network) {
  std::int64_t count = 0;
  for (const torch::Tensor& parameter : network.parameters()) count += parameter.numel();
  return count;
}

std::vector<torch::Tensor> copies(const torch::nn::Module& network) {
  std::vector<torch::Tensor> values;
  for (const torch::Tensor& parameter : network.parameters()) values.push_back(parameter.detach().clone());
  return values;
}

bool equal(const std::vector<torch::Tensor>& a, const std::vector<torch::Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](auto& x, auto& y) { return torch::equal(x, y); });
}

TEST(Dcgan, AGeneratorMakesImagesOf32By32WithPixelsFromMinusOneToOne) {
  torch::manual_seed(1);
  Generator generator;
  EXPECT_EQ(parameter_count(*generator), 100 * 128 * 16 + 128 * 64 * 16 + 64 * 32 * 16 + 32 * 16 + 2 * (128 + 64 + 32));
  const torch::Tensor images = generator(draw_noise(3) * 100);
  EXPECT_EQ(images.sizes(), (std::vector<std::int64_t>{3, 1, 32, 32}));
  EXPECT_LE(images.abs().max().item<float>(), 1);
}

TEST(Dcgan, ADiscriminatorGivesAProbabilityForEachImage) {
  torch::manual_seed(1);
  Discriminator discriminator;
  EXPECT_EQ(parameter_count(*discriminator), 32 * 16 + 32 * 64 * 16 + 64 * 128 * 16 + 128 * 16 + 2 * (64 + 128));
  const torch::Tensor probabilities = discriminator(torch::randn({5, 1, 32, 32}) * 10);
  EXPECT_EQ(probabilities.sizes(), (std::vector<std::int64_t>{5}));
  EXPECT_TRUE(probabilities.ge(0).logical_and(probabilities.le(1)).all().item<bool>());
}

TEST(Dcgan, WeightsAreNormalAroundZeroAndThoseOfBatchNormAroundOne) {
  torch::manual_seed(1);
  Generator generator;
  Discriminator discriminator;
  for (const torch::nn::Module* network :
       {static_cast<torch::nn::Module*>(generator.get()), static_cast<torch::nn::Module*>(discriminator.get())}) {
    for (const auto& parameter : network->named_parameters()) {
      const torch::Tensor& values = parameter.value();
      const bool is_bias = parameter.key().ends_with("bias");
      const double mean = values.dim() == 1 && !is_bias ? 1 : 0;
      const double deviation = is_bias ? 0 : 0.02;
      const double count = static_cast<double>(values.numel());
      EXPECT_NEAR(values.mean().item<double>(), mean, 5 * deviation / std::sqrt(count)) << parameter.key();
      EXPECT_NEAR(values.std().item<double>(), deviation, 5 * deviation / std::sqrt(2 * count)) << parameter.key();
    }
  }
}

class GanStepTest : public testing::Test {
 protected:
  GanStepTest() { torch::manual_seed(1); }

  // Trains for 10 steps; with a learning rate of 0 a network stays unchanged. Returns the result of the last step.
  GanStep train(double generator_rate, double discriminator_rate) {
    torch::optim::Adam generator_optimizer = make_optimizer(*generator_, generator_rate);
    torch::optim::Adam discriminator_optimizer = make_optimizer(*discriminator_, discriminator_rate);
    GanStep last;
    for (int step = 0; step < 10; ++step) {
      last = train_gan(generator_, generator_optimizer, discriminator_, discriminator_optimizer, real_images_);
    }
    return last;
  }

  Generator generator_;
  Discriminator discriminator_;
  torch::Tensor real_images_ = torch::ones({8, 1, 32, 32});
};

TEST_F(GanStepTest, EachNetworkIsTrainedWithItsOwnLearningRate) {
  const std::vector<torch::Tensor> generator = copies(*generator_);
  const std::vector<torch::Tensor> discriminator = copies(*discriminator_);
  train(0, 1e-3);
  EXPECT_TRUE(equal(copies(*generator_), generator));
  EXPECT_FALSE(equal(copies(*discriminator_), discriminator));

  const std::vector<torch::Tensor> trained_discriminator = copies(*discriminator_);
  train(1e-3, 0);
  EXPECT_FALSE(equal(copies(*generator_), generator));
  EXPECT_TRUE(equal(copies(*discriminator_), trained_discriminator));
}

TEST_F(GanStepTest, TheDiscriminatorLearnsToTellRealFromGenerated) {
  const GanStep last = train(0, 1e-3);
  EXPECT_LT(last.discriminator_loss, 0.5);  // the loss of a discriminator that guesses is 2 log 2 = 1.39
  EXPECT_GT(last.generator_loss, 1);
  EXPECT_GT(discriminator_(real_images_).mean().item<double>(), discriminator_(last.generated).mean().item<double>());
}

TEST_F(GanStepTest, TheGeneratorLearnsToPassForReal) {
  train(0, 1e-3);
  const double before = train(0, 0).generator_loss;
  EXPECT_LT(train(1e-3, 0).generator_loss, before);
}

TEST_F(GanStepTest, AdamForgetsQuickly) {
  const torch::optim::Adam optimizer = make_optimizer(*generator_, 0.25);
  const auto& options = static_cast<const torch::optim::AdamOptions&>(optimizer.param_groups()[0].options());
  EXPECT_EQ(options.lr(), 0.25);
  EXPECT_EQ(options.betas(), std::make_tuple(0.5, 0.999));
}

TEST(InceptionScore, IsTheNumberOfClassesThatAreFoundForCertain) {
  const torch::Tensor ten = torch::eye(10).repeat({4, 1});
  EXPECT_NEAR(inception_score(ten), 10, 1e-9);
  EXPECT_NEAR(inception_score(ten.slice(0, 0, 3)), 3, 1e-9);
}

TEST(InceptionScore, IsOneWhenTheImagesAreAllTheSameOrNobodyKnows) {
  EXPECT_NEAR(inception_score(torch::eye(10).slice(0, 0, 1).repeat({5, 1})), 1, 1e-9);
  EXPECT_NEAR(inception_score(torch::full({5, 10}, 0.1)), 1, 1e-6);
}

TEST(InceptionScore, OfTwoUnsureImages) {
  // The divergence of each image is KL((0.8, 0.2) || (0.5, 0.5)).
  const double divergence = 0.8 * std::log(1.6) + 0.2 * std::log(0.4);
  const torch::Tensor probabilities = torch::tensor({{0.8, 0.2}, {0.2, 0.8}}, torch::kDouble);
  EXPECT_NEAR(inception_score(probabilities), std::exp(divergence), 1e-12);
}

TEST(ClassesFound, CountsTheClassesThatAnyImageShows) {
  const torch::Tensor probabilities = torch::tensor({{0.95, 0.05, 0.0}, {0.99, 0.01, 0.0}, {0.2, 0.8, 0.0}});
  EXPECT_EQ(classes_found(probabilities, 0.9), 1);
  EXPECT_EQ(classes_found(probabilities, 0.75), 2);
}

TEST(LeNetTest, ClassifiesImagesOfAnySizeWithoutDropout) {
  torch::manual_seed(1);
  LeNet classifier;
  EXPECT_EQ(parameter_count(*classifier), 10 * 26 + 20 * 251 + 321 * 50 + 51 * 10);
  const torch::Tensor images = torch::randn({4, 1, 32, 32});
  classifier->train();
  const torch::Tensor probabilities = classify(classifier, images);
  EXPECT_TRUE(torch::allclose(probabilities.sum(1), torch::ones(4)));
  EXPECT_TRUE(torch::equal(classify(classifier, images), probabilities));
}

}  // namespace
