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
  ReadFiles read{.format = format, .hive_partitioning = options.partitioning.style == Partitioning::Style::hive};
  for (const std::string& path : paths) read.paths.push_back(to_plan_path(path));
  read.include_paths = options.include_paths;
  read.ignore_missing_paths = options.ignore_missing_paths;
  read.endings = options.file_extensions;
  const auto& [style, names] = options.partitioning;
  if (style == Partitioning::Style::dir) read.levels = names;
  if (style != Partitioning::Style::dir && !names.empty())
    throw InvalidArgument("a partitioning has field_names, which are for Style::dir: use Partitioning::dir");
  if (style == Partitioning::Style::dir && names.empty())
    throw InvalidArgument("a partitioning of Style::dir needs field_names, one for each folder");
  return read;
}

Dataset to_dataset(ReadFiles read) {
  find_files(read);
  return detail::PlanAccess::dataset({.node = std::make_shared<Node>(Node{std::move(read)})});
}

}  // namespace

Dataset read_images(const std::vector<std::string>& paths, const ImageOptions& options) {
  require_valid(DecodeImageOptions{.size = options.size, .mode = options.mode});
  ReadFiles read = to_read(ReadFiles::Format::images, paths, options);
  read.image_height = options.size.height;
  read.image_width = options.size.width;
  read.image_mode = options.mode;
  read.equal_shapes = options.equal_shapes;
  read.skip_damaged = options.on_error == OnError::skip;
  return to_dataset(std::move(read));
}
Dataset read_images(const std::string& path, const ImageOptions& options) {
  return read_images(std::vector{path}, options);
}

Dataset read_binary_files(const std::vector<std::string>& paths, const BinaryFilesOptions& options) {
  return to_dataset(to_read(ReadFiles::Format::binary_files, paths, options));
}
Dataset read_binary_files(const std::string& path, const BinaryFilesOptions& options) {
  return read_binary_files(std::vector{path}, options);
}

Dataset read_text(const std::vector<std::string>& paths, const TextOptions& options) {
  ReadFiles read = to_read(ReadFiles::Format::text, paths, options);
  read.drop_empty_lines = options.drop_empty_lines;
  return to_dataset(std::move(read));
}
Dataset read_text(const std::string& path, const TextOptions& options) { return read_text(std::vector{path}, options); }

}  // namespace cadre::data
