/// \file
/// Datasets of images, texts and other files, beside those of tables in cadre/data/dataset.h. Names and results are
/// those of Ray Data.
///
///     const data::Dataset images = data::read_images("train", {.size = {224, 224}, .mode = data::ImageMode::rgb,
///                                                              .partitioning = data::Partitioning::dir({"label"})});
///
/// Paths are those of read_parquet: files, folders with the files in them at any depth, patterns, and URIs of storages.
/// Rows are in the order of the files, regardless of the number of threads.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cadre/data/dataset.h"
#include "cadre/data/image.h"

namespace cadre::data {

/// Columns from the names of folders between a given path and its files. They come after the files' own columns, which
/// take precedence.
struct Partitioning {
  /// The kinds of names.
  enum class Style {
    none,  ///< no columns
    hive,  ///< "year=2024/month=5": columns "year" and "month"; see ParquetOptions::hive_partitioning
    dir,   ///< "2024/5": columns with the names of `field_names`, of texts
  };
  Style style = Style::none;  ///< see Style
  /// For Style::dir: a column for each folder, from the outermost on. A file in fewer or more folders is an
  /// InvalidArgument.
  std::vector<std::string> field_names = {};
  /// Returns a partitioning of Style::hive.
  static Partitioning hive() { return {.style = Style::hive}; }
  /// Returns a partitioning of Style::dir: dir({"label"}) for files like "cat/17.jpg".
  static Partitioning dir(std::vector<std::string> field_names) {
    return {.style = Style::dir, .field_names = std::move(field_names)};
  }
  bool operator==(const Partitioning&) const = default;  ///< compares both members
};

/// The handling of files and rows that cannot be decoded.
enum class OnError {
  fail,  ///< the execution ends with a StorageError that has the file and the row
  /// They are left out and counted in OperatorStats::skipped, and a line on stderr at the end of the execution has
  /// their number and one of the errors. The number of rows is then only known after reading: count(), split() and
  /// shards decode all files. Errors of a storage, such as a lost connection or a missing file, end the execution.
  skip,
};

/// Options of read_images.
struct ImageOptions {
  ImageSize size = {};                 ///< see DecodeImageOptions::size
  ImageMode mode = ImageMode::stored;  ///< see ImageMode
  /// If true, all images have the same shape, and the column is one of Arrow's fixed_shape_tensor. If false, it is one
  /// of Ray Data's tensors of variable shape: Batch::row_shape and Batch::values work for rows of the same shape, and
  /// so for one row at a time (Batch::slice). All images then need the same number of dimensions: give a mode if some
  /// are grey. Default: true with a size; otherwise decided by at most 64 of the images, evenly distributed. An image
  /// that does not fit is a StorageError, regardless of on_error.
  std::optional<bool> equal_shapes = {};
  OnError on_error = OnError::fail;   ///< see OnError
  bool include_paths = false;         ///< adds a column "path"
  bool ignore_missing_paths = false;  ///< leaves out paths that lead to no file; NotFound if none does
  /// Extensions of the files that are read from folders, in upper or lower case. Images of other formats than JPEG and
  /// PNG are errors, not left out in silence: name the extensions that are wanted.
  std::vector<std::string> file_extensions = {"png", "jpg", "jpeg", "tif", "tiff", "bmp", "gif"};
  Partitioning partitioning = {};  ///< see Partitioning
};
/// Reads images: JPEG and PNG files, each of which is a row, as the column "image" of tensors of uint8 with the shape
/// {height, width, channels}, or {height, width} for one channel; see decode_image. Files are decoded by the threads of
/// the dataset, a few at a time. Throws NotFound if there is no such file or folder, or no file in it, and
/// InvalidArgument for invalid options; an execution throws StorageError, with the file and its row, for an image that
/// is damaged.
Dataset read_images(const std::vector<std::string>& paths, const ImageOptions& options = {});
/// Does the same with one path.
Dataset read_images(const std::string& path, const ImageOptions& options = {});

/// Options of read_binary_files.
struct BinaryFilesOptions {
  bool include_paths = false;                     ///< adds a column "path"
  bool ignore_missing_paths = false;              ///< see ImageOptions
  std::vector<std::string> file_extensions = {};  ///< see ImageOptions; empty: all files
  Partitioning partitioning = {};                 ///< see Partitioning
};
/// Reads whole files, each of which is a row, as the column "bytes". They are not decompressed. A file may have up to
/// 2 GiB. Throws like read_images.
Dataset read_binary_files(const std::vector<std::string>& paths, const BinaryFilesOptions& options = {});
/// Does the same with one path.
Dataset read_binary_files(const std::string& path, const BinaryFilesOptions& options = {});

/// Options of read_text.
struct TextOptions {
  bool drop_empty_lines = true;                   ///< leaves out lines that are empty or have only white space
  bool include_paths = false;                     ///< adds a column "path"
  bool ignore_missing_paths = false;              ///< see ImageOptions
  std::vector<std::string> file_extensions = {};  ///< see ImageOptions; empty: all files
  Partitioning partitioning = {};                 ///< see Partitioning
};
/// Reads the lines of text files in UTF-8 as the column "text"; they end with "\n", "\r\n" or "\r", which are not part
/// of the text. Files whose names end with ".gz", ".zst", ".bz2" or ".lz4" are decompressed. The number of rows is only
/// known after reading. Throws like read_images; an execution throws StorageError, with the file and the line, for
/// bytes that are not UTF-8 and for a line of more than 1 GiB.
Dataset read_text(const std::vector<std::string>& paths, const TextOptions& options = {});
/// Does the same with one path.
Dataset read_text(const std::string& path, const TextOptions& options = {});

}  // namespace cadre::data
