#include "cadre/data/read.h"

#include <fmt/format.h>

#include <utility>

#include "cadre/error.h"
#include "data/files.h"
#include "data/image_modes.h"
#include "data/plan.h"

namespace cadre::data {
namespace {

// Returns a read with the options that all formats have.
template <class Options>
ReadFiles to_read(ReadFiles::Format format, const std::vector<std::string>& paths, const Options& options) {
  if (paths.empty()) throw InvalidArgument("a dataset is read from at least one path");
  ReadFiles read{.format = format, .hive_partitioning = false};
  for (const std::string& path : paths) read.paths.push_back(to_plan_path(path));
  read.include_paths = options.include_paths;
  read.ignore_missing_paths = options.ignore_missing_paths;
  read.endings = options.file_extensions;
  return read;
}

void set_partitioning(ReadFiles& read, const Partitioning& partitioning) {
  const auto& [style, names] = partitioning;
  if (style == Partitioning::Style::dir && names.empty())
    throw InvalidArgument("a partitioning of Style::dir needs field_names, one for each folder");
  if (style != Partitioning::Style::dir && !names.empty())
    throw InvalidArgument("a partitioning has field_names, which are for Style::dir: use Partitioning::dir");
  read.hive_partitioning = style == Partitioning::Style::hive;
  if (style == Partitioning::Style::dir) read.levels = names;
}

void set_images(ReadFiles& read, const DecodeImageOptions& options) {
  require_valid(options);
  read.image_height = options.size.height;
  read.image_width = options.size.width;
  read.image_mode = options.mode;
}

Dataset to_dataset(ReadFiles read) {
  find_files(read);
  return detail::PlanAccess::dataset({.node = std::make_shared<Node>(Node{std::move(read)})});
}

}  // namespace

Dataset read_images(const std::vector<std::string>& paths, const ImageOptions& options) {
  ReadFiles read = to_read(ReadFiles::Format::images, paths, options);
  set_partitioning(read, options.partitioning);
  set_images(read, {.size = options.size, .mode = options.mode});
  read.equal_shapes = options.equal_shapes;
  read.skip_damaged = options.on_error == OnError::skip;
  return to_dataset(std::move(read));
}
Dataset read_images(const std::string& path, const ImageOptions& options) {
  return read_images(std::vector{path}, options);
}

Dataset read_binary_files(const std::vector<std::string>& paths, const BinaryFilesOptions& options) {
  ReadFiles read = to_read(ReadFiles::Format::binary_files, paths, options);
  set_partitioning(read, options.partitioning);
  return to_dataset(std::move(read));
}
Dataset read_binary_files(const std::string& path, const BinaryFilesOptions& options) {
  return read_binary_files(std::vector{path}, options);
}

Dataset read_text(const std::vector<std::string>& paths, const TextOptions& options) {
  ReadFiles read = to_read(ReadFiles::Format::text, paths, options);
  set_partitioning(read, options.partitioning);
  read.drop_empty_lines = options.drop_empty_lines;
  return to_dataset(std::move(read));
}
Dataset read_text(const std::string& path, const TextOptions& options) { return read_text(std::vector{path}, options); }

Dataset read_numpy(const std::vector<std::string>& paths, const NumpyOptions& options) {
  ReadFiles read = to_read(ReadFiles::Format::numpy, paths, options);
  set_partitioning(read, options.partitioning);
  read.skip_damaged = options.on_error == OnError::skip;
  return to_dataset(std::move(read));
}
Dataset read_numpy(const std::string& path, const NumpyOptions& options) {
  return read_numpy(std::vector{path}, options);
}

Dataset read_tfrecords(const std::vector<std::string>& paths, const TfRecordsOptions& options) {
  ReadFiles read = to_read(ReadFiles::Format::tf_records, paths, options);
  read.types = options.types;
  read.skip_damaged = options.on_error == OnError::skip;
  return to_dataset(std::move(read));
}
Dataset read_tfrecords(const std::string& path, const TfRecordsOptions& options) {
  return read_tfrecords(std::vector{path}, options);
}

Dataset read_webdataset(const std::vector<std::string>& paths, const WebDatasetOptions& options) {
  ReadFiles read = to_read(ReadFiles::Format::webdataset, paths, options);
  set_images(read, {.size = options.size, .mode = options.mode});
  read.decode = options.decode;
  read.suffixes = options.suffixes;
  read.skip_damaged = options.on_error == OnError::skip;
  return to_dataset(std::move(read));
}
Dataset read_webdataset(const std::string& path, const WebDatasetOptions& options) {
  return read_webdataset(std::vector{path}, options);
}

Dataset with_row_numbers(const Dataset& dataset, const std::string& column) {
  const PlanContent& plan = detail::PlanAccess::plan(dataset);
  return detail::PlanAccess::dataset(
      {std::make_shared<Node>(Node{RowNumbers{column}, {plan.node}}), plan.name, plan.options});
}

}  // namespace cadre::data
