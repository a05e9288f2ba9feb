// cadre_augment_images: how many images of a folder are read, decoded, cropped, flipped and normalised per second.
// peers/augment_images.py runs it and the same with PyTorch's DataLoader, in turns.
#include <cadre/data.h>

#include <chrono>
#include <iostream>

#include "cli/command_line.h"

namespace {

namespace data = cadre::data;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

class Augment {
 public:
  explicit Augment(const cadre::Config& config)
      : transforms_({data::transforms::RandomResizedCrop{.size = {224, 224}}, data::transforms::RandomHorizontalFlip(),
                     data::transforms::Normalize{.mean = {0.485, 0.456, 0.406}, .std = {0.229, 0.224, 0.225}}},
                    {.seed = 1, .epoch = config.get<std::uint64_t>("epoch")}) {}

  data::Batch operator()(const data::Batch& batch) const {
    return data::Batch({{"image", transforms_(batch, "bytes")}});
  }

 private:
  data::ImageTransforms transforms_;
};

struct Settings {
  fs::path folder;
  std::int64_t workers = 2;
  std::int64_t epochs = 1;
  bool in_threads = false;
};

void run_epoch(const Settings& settings, std::int64_t epoch) {
  const auto began = Clock::now();
  const auto place = settings.in_threads ? data::FunctionPlace::threads : data::FunctionPlace::processes;
  const data::Dataset images =
      data::with_row_numbers(data::read_binary_files(settings.folder))
          .map_batches(data::actor<Augment>(),
                       {.batch_size = 64, .concurrency = settings.workers, .constructor_config = {{"epoch", epoch}}})
          .with_options({.num_threads = settings.workers, .function_place = place});
  std::int64_t count = 0;
  double sum = 0;
  for (const data::Batch& batch : images.iter_batches({.batch_size = 64})) {
    count += batch.num_rows();
    float own = 0;
    for (const float value : batch.values<float>("image")) own += value;
    sum += own;
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  std::cout << cadre::to_json(cadre::Dict{{"way", settings.in_threads ? "threads" : "processes"},
                                          {"epoch", epoch},
                                          {"images", count},
                                          {"mean", sum / static_cast<double>(count) / (3 * 224 * 224)},
                                          {"seconds", seconds},
                                          {"images_per_s", static_cast<double>(count) / seconds}})
            << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  Settings settings;
  cadre::cli::Program program("Images per second that a dataset changes at random, as lines of JSON",
                              "cadre_augment_images");
  cadre::cli::Command command = program.command();
  command.show_defaults();
  command.option("--folder", &settings.folder, "where the images lie").required();
  command.option("--threads", &settings.workers, "workers").at_least(1);
  command.option("--epochs", &settings.epochs, "how often all images are read").at_least(1);
  command.flag("--in-threads", &settings.in_threads, "workers are threads, not processes");
  command.on_call([&] {
    for (std::int64_t epoch = 0; epoch < settings.epochs; ++epoch) run_epoch(settings, epoch);
  });
  try {
    return program.parse(argc, argv, /*wrong_usage=*/2);
  } catch (const std::exception& error) {
    std::cerr << "cadre_augment_images: " << error.what() << "\n";
    return 1;
  }
}
