// cadre_read_images: how many images of a folder are read and decoded per second, by a dataset and by a plain loop over
// the same files in threads. peers/read_images.py runs it and the same with Ray Data, in turns.
#include <cadre/data.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <thread>
#include <vector>

#include "cli/command_line.h"

namespace {

namespace data = cadre::data;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

struct Settings {
  fs::path folder;
  std::int64_t threads = 2;
  std::int64_t size = 0;  // height and width of the results; 0: the images' own
  bool dataset_first = false;

  data::DecodeImageOptions decoding() const {
    data::DecodeImageOptions options;
    if (size > 0) options = {.size = {size, size}, .mode = data::ImageMode::rgb};
    return options;
  }
};

// The images that were read, and the sum of all of their values.
struct Result {
  std::int64_t images = 0;
  std::int64_t sum = 0;
};

Result read_with_dataset(const Settings& settings) {
  const data::DecodeImageOptions decoding = settings.decoding();
  const data::Dataset images =
      data::read_images(settings.folder, {.size = decoding.size, .mode = decoding.mode})
          .with_options({.num_threads = settings.threads, .function_place = data::FunctionPlace::threads});
  Result result;
  for (const data::Batch& batch : images.iter_batches({.batch_size = 64})) {
    result.images += batch.num_rows();
    for (const std::uint8_t value : batch.values<std::uint8_t>("image")) result.sum += value;
  }
  return result;
}

// The least that has to be done: read each file and decode it.
Result read_with_loop(const Settings& settings) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(settings.folder)) files.push_back(entry.path());
  const data::DecodeImageOptions decoding = settings.decoding();
  std::atomic<std::size_t> next = 0;
  std::atomic<std::int64_t> sum = 0;
  const auto work = [&] {
    for (std::size_t at = next++; at < files.size(); at = next++) {
      std::string bytes(fs::file_size(files[at]), '\0');
      std::ifstream(files[at], std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
      std::int64_t own = 0;
      for (const std::uint8_t value : data::decode_image(bytes, decoding).pixels) own += value;
      sum += own;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::int64_t thread = 0; thread < settings.threads; ++thread) threads.emplace_back(work);
  }
  return {static_cast<std::int64_t>(files.size()), sum};
}

// Returns the seconds of CPU time that this process has used.
double cpu_seconds() {
  ::rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const ::timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void measure(const char* way, Result (*read)(const Settings&), const Settings& settings) {
  const auto began = Clock::now();
  const double cpu_before = cpu_seconds();
  const Result result = read(settings);
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  std::cout << cadre::to_json(cadre::Dict{{"way", way},
                                          {"images", result.images},
                                          {"sum", result.sum},
                                          {"seconds", seconds},
                                          {"cpu_s", cpu_seconds() - cpu_before},
                                          {"images_per_s", static_cast<double>(result.images) / seconds}})
            << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  Settings settings;
  cadre::cli::Program program("Images per second that a dataset and a plain loop read, as lines of JSON",
                              "cadre_read_images");
  cadre::cli::Command command = program.command();
  command.show_defaults();
  command.option("--folder", &settings.folder, "where the images lie").required();
  command.option("--threads", &settings.threads, "that read and decode").at_least(1);
  command.option("--size", &settings.size, "height and width of the results; 0: the images' own").at_least(0);
  command.flag("--dataset-first", &settings.dataset_first, "read with the dataset first, and not with the loop");
  command.on_call([&] {
    if (settings.dataset_first) measure("dataset", read_with_dataset, settings);
    measure("loop", read_with_loop, settings);
    if (!settings.dataset_first) measure("dataset", read_with_dataset, settings);
  });
  try {
    return program.parse(argc, argv, /*wrong_usage=*/2);
  } catch (const std::exception& error) {
    std::cerr << "cadre_read_images: " << error.what() << "\n";
    return 1;
  }
}
