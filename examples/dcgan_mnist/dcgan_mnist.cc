// Population Based Training of a DCGAN on MNIST: every trial trains a generator of digits and a discriminator, with a
// learning rate for each. The generator's images are scored by a classifier, which is trained first. Every five
// iterations the trials with the lowest scores continue from the checkpoints of the highest, with slightly changed
// learning rates. The same program as Ray Tune's example pbt_dcgan_mnist_func.py.
#include <cadre/torch.h>
#include <cadre/torch/save_dict.h>
#include <cadre/tune.h>
#include <torch/torch.h>

#include <filesystem>
#include <iostream>

#include "datasets/mnist.h"
#include "models/dcgan.h"
#include "models/inception_score.h"
#include "models/lenet.h"
#include "pictures/png.h"
#include "program/experiment_program.h"

using cadre::Config;
using cadre::fn;
using cadre::Metrics;
using datasets::Mnist;
using datasets::MnistPart;
using examples::ExperimentFlags;
using models::Discriminator;
using models::Generator;
using models::LeNet;
namespace fs = std::filesystem;
namespace tune = cadre::tune;

struct Flags : ExperimentFlags {
  bool synch = false;
};

constexpr std::int64_t batch_size = 64;
constexpr std::int64_t train_batches = 5;  // per iteration
constexpr std::int64_t image_size = 32;
constexpr datasets::Normalisation from_minus_one_to_one{.mean = 0.5, .deviation = 0.5};  // like a generator's images

// Returns distinct real digits, drawn at random, at the image size of the discriminator: [count, 1, 32, 32].
torch::Tensor draw_digits(const Mnist& examples, std::int64_t count) {
  const torch::Tensor indices = torch::randperm(examples.size()).slice(0, 0, count);
  return torch::upsample_bilinear2d(examples.at(indices).images, {image_size, image_size}, /*align_corners=*/false);
}

LeNet load_classifier(const Config& config) {
  LeNet classifier;
  cadre::load_object(cadre::get_object(config, "classifier"), classifier);  // shared with all trials, not copied
  return classifier;
}

// Returns one of a config's learning rates as set_hyperparameters() expects it.
Config learning_rate(const Config& config, const std::string& key) { return {{"lr", config.at(key)}}; }

// Runs one trial in its own process, until the scheduler or the stop criterion ends it inside report().
void train_dcgan(const Config& config) {
  const Mnist train_set(config.get<std::string>("data_dir"), MnistPart::train, from_minus_one_to_one);
  torch::manual_seed(tune::get_context().get_seed());
  LeNet classifier = load_classifier(config);

  Generator generator;
  Discriminator discriminator;
  torch::optim::Adam generator_optimizer = models::make_optimizer(*generator, config.get<double>("netG_lr"));
  torch::optim::Adam discriminator_optimizer = models::make_optimizer(*discriminator, config.get<double>("netD_lr"));

  std::int64_t step = 0;
  const cadre::TrainingState state({{"netG", generator},
                                    {"netD", discriminator},
                                    {"optimG", generator_optimizer},
                                    {"optimD", discriminator_optimizer},
                                    {"step", step}});
  if (const auto checkpoint = tune::get_checkpoint()) {
    // This trial's own checkpoint after an interruption, or another trial's that does better.
    state.load(checkpoint->path() / "state.pt");
    // The explored values instead of the checkpoint's.
    cadre::set_hyperparameters(generator_optimizer, learning_rate(config, "netG_lr"));
    cadre::set_hyperparameters(discriminator_optimizer, learning_rate(config, "netD_lr"));
  }
  for (++step;; ++step) {
    torch::manual_seed(tune::get_context().get_seed());  // per iteration: an interruption does not change results
    models::GanStep last;
    for (const torch::Tensor& digits : draw_digits(train_set, train_batches * batch_size).split(batch_size)) {
      last = models::train_gan(generator, generator_optimizer, discriminator, discriminator_optimizer, digits);
    }
    const Metrics metrics{{"is_score", models::inception_score(models::classify(classifier, last.generated))},
                          {"lossg", last.generator_loss},
                          {"lossd", last.discriminator_loss},
                          {"netG_lr", config.at("netG_lr")},
                          {"netD_lr", config.at("netD_lr")}};
    tune::report(metrics, [&](const fs::path& directory) { state.save(directory / "state.pt"); });
  }
}

// Trains a classifier until it is accurate enough for meaningful scores: 97 % on digits that it was not trained with.
// Training takes one or two epochs.
LeNet train_classifier(const Flags& flags) {
  constexpr double good_accuracy = 0.97;
  constexpr int max_epochs = 2;
  const Mnist train_set(flags.data_dir, MnistPart::train, from_minus_one_to_one);
  const Mnist test_set(flags.data_dir, MnistPart::test, from_minus_one_to_one);
  torch::manual_seed(flags.seed);
  LeNet classifier;
  double reached = 0;
  for (int epoch = 1; epoch <= max_epochs; ++epoch) {
    models::train_epoch(classifier, train_set);
    reached = models::accuracy(classifier, test_set);
    std::cout << "Classifier after epoch " << epoch << ": accuracy " << reached << std::endl;
    if (reached >= good_accuracy) return classifier;
  }
  throw cadre::Error("the classifier tells only " + std::to_string(reached) + " of the digits in " + flags.data_dir +
                     ", and " + std::to_string(good_accuracy) + " are needed; is that MNIST?");
}

// Returns the classifier stored beside the experiment, or trains and stores one. A restored experiment uses the same
// classifier, because scores from another one would not be comparable.
LeNet find_classifier(const Flags& flags) {
  const fs::path file = flags.experiment_path().string() + "_classifier.pt";
  if (flags.restore && fs::exists(file)) {
    LeNet classifier;
    cadre::load_state(file, *classifier);
    return classifier;
  }
  LeNet classifier = train_classifier(flags);
  fs::create_directories(file.parent_path());
  cadre::save_state(file, *classifier);
  return classifier;
}

// Prints reference inception scores of this classifier.
void show_scale(LeNet& classifier, const Flags& flags) {
  const torch::NoGradGuard no_grad;
  const auto score = [&](const torch::Tensor& images) {
    return models::inception_score(models::classify(classifier, images));
  };
  const Mnist test_set(flags.data_dir, MnistPart::test, from_minus_one_to_one);
  Generator untrained;
  std::cout << "Inception scores: real digits " << score(draw_digits(test_set, 512)) << ", an untrained generator "
            << score(untrained(models::draw_noise(512))) << std::endl;
}

tune::TunerOptions make_options(const Flags& flags, const cadre::ObjectRef& classifier) {
  const tune::PopulationBasedTraining pbt{
      .time_attr = "training_iteration",
      .perturbation_interval = 5,
      .hyperparam_mutations = {{"netG_lr", tune::uniform(1e-5, 1e-2)}, {"netD_lr", tune::uniform(1e-5, 1e-2)}},
      .synch = flags.synch};
  return tune::TunerOptions{
      .param_space = {{"netG_lr", tune::choice({0.0001, 0.0002, 0.0005})},
                      {"netD_lr", tune::choice({0.0001, 0.0002, 0.0005})},
                      {"data_dir", fs::absolute(flags.data_dir).string()},
                      {"classifier", classifier}},
      .tune_config = {.metric = tune::maximize("is_score"),
                      .num_samples = flags.num_samples,
                      .scheduler = pbt,
                      .seed = flags.seed},
      .run_config = {.name = flags.name,
                     .storage_path = flags.storage_path,
                     .stop = {{"training_iteration", flags.max_iterations}},
                     .checkpoint_config = {
                         .num_to_keep = 4, .checkpoint_score_attribute = "is_score", .checkpoint_frequency = 5}}};
}

// Reports errors in the options before the classifier is trained.
void check(const Flags& flags) {
  if (flags.restore) {
    tune::Tuner::restore(flags.experiment_path());
    return;
  }
  if (tune::Tuner::can_restore(flags.experiment_path())) {
    throw cadre::InvalidArgument("the experiment " + flags.experiment_path().string() +
                                 " exists already; continue it with --restore, or give this one another --name");
  }
  const cadre::ObjectRef untrained = cadre::put(LeNet());
  tune::Tuner(fn<train_dcgan>, make_options(flags, untrained));
}

// Returns the first 64 images in rows of 8, each with a black border of one pixel.
pictures::GreyPicture make_grid(const torch::Tensor& images) {
  constexpr std::int64_t columns = 8;
  constexpr std::int64_t tile_size = image_size + 2;
  const torch::Tensor pixels = images.slice(0, 0, columns * columns).add(1).mul(127.5).round().to(torch::kUInt8);
  const torch::Tensor tiles = torch::constant_pad_nd(pixels.squeeze(1), {1, 1, 1, 1});
  const torch::Tensor grid = tiles.view({columns, columns, tile_size, tile_size}).transpose(1, 2).contiguous();
  constexpr auto side = static_cast<std::size_t>(columns * tile_size);
  return {side, side, {grid.data_ptr<std::uint8_t>(), grid.data_ptr<std::uint8_t>() + grid.numel()}};
}

// Returns images that the generator of a checkpoint makes from new noise.
torch::Tensor generate(const cadre::Checkpoint& checkpoint, std::int64_t count) {
  const torch::NoGradGuard no_grad;
  Generator generator;
  cadre::load_dict(checkpoint.path() / "state.pt", {{"netG", generator}});
  return generator(models::draw_noise(count));
}

void show_best(const tune::ResultGrid& results, LeNet& classifier) {
  // The score of 64 images varies from call to call, so the mean of five results is more reliable.
  const tune::Result& best = results.get_best_result({}, {}, tune::Scope::last_5_avg);
  const cadre::Checkpoint checkpoint = best.get_best_checkpoint(tune::maximize("is_score"));
  const torch::Tensor images = generate(checkpoint, 512);
  const torch::Tensor probabilities = models::classify(classifier, images);

  const fs::path curves = results.experiment_path() / "learning_curves.svg";
  tune::write_plot(results, curves, {.metrics = {"is_score", "lossg", "lossd"}});
  const fs::path digits = results.experiment_path() / "digits.png";
  pictures::write_png(digits, make_grid(images));

  std::cout << "\nBest trial " << best.trial_id << ": 512 new images have an inception score of "
            << models::inception_score(probabilities) << ", and " << models::classes_found(probabilities, 0.9)
            << " of the 10 digits are among them"
            << "\n  config:     " << cadre::to_json(best.config.dict())
            << "\n  checkpoint: " << checkpoint.path().string() << "\n  pictures:   " << curves.string()
            << "\n              " << digits.string() << "\n";
}

int run(const Flags& flags) {
  check(flags);
  LeNet classifier = find_classifier(flags);
  show_scale(classifier, flags);
  const cadre::ObjectRef stored = cadre::put(classifier);
  tune::Tuner tuner = flags.restore ? tune::Tuner::restore(flags.experiment_path())
                                    : tune::Tuner(fn<train_dcgan>, make_options(flags, stored));
  const tune::ResultGrid results = tuner.fit();
  torch::manual_seed(flags.seed);
  show_best(results, classifier);
  return results.num_errors() == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  cadre::init(argc, argv);  // first: from here on, the workers of all trials are forked

  Flags flags{{.num_samples = 8, .max_iterations = 150, .name = "dcgan_mnist"}};
  examples::CommandLine command_line("Population Based Training of a DCGAN on MNIST");
  examples::add_flags(command_line, flags);
  command_line.flag("--synch", &flags.synch, "trials wait for each other every 5 iterations");
  if (const auto exit_code = command_line.parse(argc, argv)) return *exit_code;
  return examples::run_program("dcgan_mnist", flags, [&] { return run(flags); });
}
