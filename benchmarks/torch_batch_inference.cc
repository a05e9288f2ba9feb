// cadre_batch_inference: how long it takes to run a trained network over the images of Parquet files, with a dataset's
// map_batches and with hand-written loops. peers/batch_inference.py runs them and the same with Ray Data, in turns.
#include <arrow/array.h>
#include <arrow/extension_type.h>
#include <arrow/io/file.h>
#include <arrow/record_batch.h>
#include <cadre/data_torch.h>
#include <cadre/torch.h>
#include <malloc.h>
#include <parquet/arrow/reader.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <torch/torch.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <iostream>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

#include "cli/command_line.h"
#include "datasets/idx.h"
#include "models/convnet.h"

namespace {

namespace data = cadre::data;
namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kPixels = 28 * 28;

struct Settings {
  std::string way = "map_batches";
  std::int64_t workers = 2;
  std::int64_t batch_size = 128;
  std::int64_t images = 10000;
  fs::path data_folder = "data/mnist";
  fs::path folder;

  fs::path images_folder() const { return folder / "images"; }
  fs::path model_file() const { return folder / "model.pt"; }
};

// ---- Input: rows of "image" and "label", and a network

torch::Tensor to_tensor(const datasets::IdxArray& array, std::int64_t row_bytes) {
  auto* const bytes = const_cast<std::uint8_t*>(array.elements.data());  // NOLINT: libtorch has no tensor of const
  return torch::from_blob(bytes, {static_cast<std::int64_t>(array.elements.size()) / row_bytes, row_bytes},
                          torch::kUInt8)
      .clone();
}

void write_inputs(const Settings& settings) {
  const auto images = to_tensor(datasets::read_idx(settings.data_folder / "t10k-images-idx3-ubyte", 3), kPixels);
  const auto labels = to_tensor(datasets::read_idx(settings.data_folder / "t10k-labels-idx1-ubyte", 1), 1).flatten();
  const torch::Tensor rows = torch::arange(settings.images).remainder(images.size(0));
  data::from_tensors(
      {{"image", images.index_select(0, rows)}, {"label", labels.index_select(0, rows).to(torch::kLong)}})
      .write_parquet(settings.images_folder(), {.rows_per_row_group = 1000});
  torch::manual_seed(0);
  torch::save(models::ConvNet(), settings.model_file());
}

// ---- The work

class Classifier {
 public:
  explicit Classifier(const fs::path& model_file) {
    torch::load(model_, model_file);
    model_->eval();
  }

  // Returns for uint8 images [N, 784] whether each label is predicted correctly, as bools [N].
  torch::Tensor is_right(const torch::Tensor& images, const torch::Tensor& labels) {
    const torch::NoGradGuard no_grad;
    const torch::Tensor input = images.to(torch::kFloat).div(127.5).sub(1).view({-1, 1, 28, 28});
    return model_(input).argmax(1).eq(labels);
  }

 private:
  models::ConvNet model_;
};

// ---- Hand-written loops, as fast as possible

// Keeps the memory of a batch for the next one, as Cadre's workers do. It makes the loops a third faster.
void tune_allocator() {
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

template <class T>
T checked(arrow::Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return *std::move(result);
}

std::unique_ptr<parquet::arrow::FileReader> open_images(const Settings& settings) {
  auto file = checked(
      arrow::io::MemoryMappedFile::Open(settings.images_folder() / "part_000000.parquet", arrow::io::FileMode::READ));
  auto reader = checked(parquet::arrow::OpenFile(std::move(file), arrow::default_memory_pool()));
  reader->set_batch_size(settings.batch_size);
  return reader;
}

std::int64_t count_right(Classifier& classifier, const arrow::RecordBatch& batch) {
  const auto& tensors = dynamic_cast<const arrow::ExtensionArray&>(*batch.GetColumnByName("image"));
  const auto& images = dynamic_cast<const arrow::FixedSizeListArray&>(*tensors.storage());
  const auto& pixels = dynamic_cast<const arrow::UInt8Array&>(*images.values());
  const auto& labels = dynamic_cast<const arrow::Int64Array&>(*batch.GetColumnByName("label"));
  auto* const first_pixel = const_cast<std::uint8_t*>(pixels.raw_values()) + images.value_offset(0);
  auto* const first_label = const_cast<std::int64_t*>(labels.raw_values());
  return classifier
      .is_right(torch::from_blob(first_pixel, {batch.num_rows(), kPixels}, torch::kUInt8),
                torch::from_blob(first_label, {batch.num_rows()}, torch::kLong))
      .sum()
      .item<std::int64_t>();
}

std::int64_t loop_over(const Settings& settings, const std::vector<int>& row_groups) {
  Classifier classifier(settings.model_file());
  const auto reader = open_images(settings);
  const auto batches = checked(reader->GetRecordBatchReader(row_groups));
  std::int64_t right = 0;
  for (std::shared_ptr<arrow::RecordBatch> batch; (batch = checked(batches->Next())) != nullptr;)
    right += count_right(classifier, *batch);
  return right;
}

// Runs one process; its threads share each batch's work.
std::int64_t loop(const Settings& settings) {
  tune_allocator();
  at::set_num_threads(static_cast<int>(settings.workers));
  std::vector<int> row_groups(static_cast<std::size_t>(open_images(settings)->num_row_groups()));
  std::iota(row_groups.begin(), row_groups.end(), 0);
  return loop_over(settings, row_groups);
}

// Runs a process for each worker, with its own row groups.
std::int64_t loops(const Settings& settings) {
  const auto workers = static_cast<std::size_t>(settings.workers);
  const int row_groups = open_images(settings)->num_row_groups();
  void* const shared =
      ::mmap(nullptr, workers * sizeof(std::int64_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::runtime_error("no memory to share");
  const std::span right(static_cast<std::int64_t*>(shared), workers);
  std::vector<pid_t> children;
  for (std::size_t worker = 0; worker < workers; ++worker) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    tune_allocator();
    at::set_num_threads(1);
    std::vector<int> own;
    for (int group = static_cast<int>(worker); group < row_groups; group += static_cast<int>(workers))
      own.push_back(group);
    right[worker] = loop_over(settings, own);
    ::_exit(0);
  }
  for (const pid_t child : children) {
    int status = 0;
    if (::waitpid(child, &status, 0) != child || status != 0) throw std::runtime_error("a process has failed");
  }
  return std::reduce(right.begin(), right.end());
}

// ---- As a dataset

class Predictor {
 public:
  explicit Predictor(const cadre::Config& config) : classifier_(config.get<std::string>("model")) {}

  data::Batch operator()(const data::Batch& batch) {
    const torch::Tensor right = classifier_.is_right(data::to_tensor(batch, "image"), data::to_tensor(batch, "label"));
    return data::Batch({{"right", data::to_column(right.to(torch::kLong))}});
  }

 private:
  Classifier classifier_;
};

std::int64_t map_batches(const Settings& settings) {
  const data::Dataset results =
      data::read_parquet(settings.images_folder())
          .map_batches(data::actor<Predictor>(), {.batch_size = settings.batch_size,
                                                  .concurrency = settings.workers,
                                                  .constructor_config = {{"model", settings.model_file().string()}}});
  return results.sum("right").get<std::int64_t>();
}

void measure(const Settings& settings) {
  const auto way = settings.way == "loop" ? loop : settings.way == "loops" ? loops : map_batches;
  const auto began = Clock::now();
  const std::int64_t right = way(settings);
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  std::cout << cadre::to_json({{"way", settings.way},
                               {"rows", settings.images},
                               {"right", right},
                               {"seconds", seconds},
                               {"rows_per_s", static_cast<double>(settings.images) / seconds}})
            << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  cadre::init(argc, argv);
  Settings settings;
  cadre::cli::Program program("Rows per second of a network over images in Parquet files, as one line of JSON",
                              "cadre_batch_inference");
  cadre::cli::Command command = program.command();
  command.show_defaults();
  command.option("--way", &settings.way, "\"write\" makes what the others read")
      .one_of({"write", "loop", "loops", "map_batches"});
  command.option("--workers", &settings.workers, "processes of one thread; of \"loop\" threads of one process");
  command.option("--batch-size", &settings.batch_size);
  command.option("--images", &settings.images, "those of the test set, again and again");
  command.option("--data-folder", &settings.data_folder, "folder with t10k-images-idx3-ubyte and -labels-idx1-");
  command.option("--folder", &settings.folder, "where images and network lie").required();
  command.on_call([&] { settings.way == "write" ? write_inputs(settings) : measure(settings); });
  try {
    return program.parse(argc, argv, /*wrong_usage=*/2);
  } catch (const std::exception& error) {
    std::cerr << "cadre_batch_inference: " << error.what() << "\n";
    return 1;
  }
}
