// Reads files with cadre::data and writes their rows as Parquet, for a comparison with Ray Data, Pillow and numpy.
//
//   data_read_tool <reader> <paths as JSON> <options as JSON> <new folder>
//
// The reader is "images", "binary_files", "text", "numpy", "tfrecords", "webdataset" or "decode": Parquet files with a
// column "bytes" of images. Options have the names of the C++ options.
#include <cstdio>
#include <string>
#include <vector>

#include "base/json.h"
#include "cadre/data.h"
#include "cadre/error.h"

namespace {

using cadre::Config;
using cadre::Value;
namespace data = cadre::data;

data::ImageMode mode_of(const std::string& name) {
  if (name == "L") return data::ImageMode::grey;
  if (name == "RGB") return data::ImageMode::rgb;
  if (name == "RGBA") return data::ImageMode::rgba;
  return data::ImageMode::stored;
}

template <class Options>
Options common_options(const Config& config) {
  Options options;
  options.include_paths = config.get<bool>("include_paths", false);
  if (config.contains("file_extensions"))
    options.file_extensions = config.get<std::vector<std::string>>("file_extensions");
  return options;
}

data::Batch decode(const data::Batch& batch, const Config& config) {
  data::DecodeImageOptions options{.mode = mode_of(config.get<std::string>("mode", ""))};
  if (const Value* size = config.find("size"))
    options.size = {size->items()[0].get<std::int64_t>(), size->items()[1].get<std::int64_t>()};
  return batch.select(std::vector<std::string>{}).with("image", data::decode_images(batch, "bytes", options));
}

data::Dataset read(const std::string& reader, const std::vector<std::string>& paths, const Config& config) {
  if (reader == "images") {
    auto options = common_options<data::ImageOptions>(config);
    options.mode = mode_of(config.get<std::string>("mode", ""));
    if (const Value* size = config.find("size"))
      options.size = {size->items()[0].get<std::int64_t>(), size->items()[1].get<std::int64_t>()};
    if (config.get<bool>("skip", false)) options.on_error = data::OnError::skip;
    return data::read_images(paths, options);
  }
  if (reader == "binary_files") return data::read_binary_files(paths, common_options<data::BinaryFilesOptions>(config));
  if (reader == "text") {
    auto options = common_options<data::TextOptions>(config);
    options.drop_empty_lines = config.get<bool>("drop_empty_lines", true);
    return data::read_text(paths, options);
  }
  if (reader == "numpy") return data::read_numpy(paths, common_options<data::NumpyOptions>(config));
  if (reader == "tfrecords") return data::read_tfrecords(paths, common_options<data::TfRecordsOptions>(config));
  if (reader == "webdataset") return data::read_webdataset(paths, common_options<data::WebDatasetOptions>(config));
  if (reader == "decode") return data::read_parquet(paths).map_batches(cadre::fn<decode>, {.config = config});
  throw cadre::InvalidArgument("there is no reader " + reader);
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() != 4)
    throw cadre::InvalidArgument("usage: data_read_tool <reader> <paths> <options> <new folder>");
  const auto paths = cadre::base::parse_json(arguments[1], "the paths").get<std::vector<std::string>>();
  const Config config(cadre::base::parse_json(arguments[2], "the options"));
  read(arguments[0], paths, config)
      .with_options({.num_threads = 2, .function_place = data::FunctionPlace::threads})
      .write_parquet(arguments[3]);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
