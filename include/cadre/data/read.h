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
#include <utility>
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
  /// are grey. Default: true with a size and a mode; otherwise decided by at most 64 of the images, evenly distributed.
  /// An image that does not fit is an InvalidArgument, regardless of on_error.
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

/// Options of read_numpy.
struct NumpyOptions {
  OnError on_error = OnError::fail;                    ///< see OnError; the number of rows is known even with skip
  bool include_paths = false;                          ///< adds a column "path"
  bool ignore_missing_paths = false;                   ///< see ImageOptions
  std::vector<std::string> file_extensions = {"npy"};  ///< see ImageOptions; {"npz"} for archives
  Partitioning partitioning = {};                      ///< see Partitioning
};
/// Reads arrays of numpy from .npy files, as the column "data": a row for each index of the first dimension, and a
/// single row for an array without dimensions. Rows of further dimensions are tensors of the remaining shape. Values
/// are truth values, integers, floats, and, in arrays of one dimension, bytes, texts, and times and durations in s, ms,
/// us or ns; of either byte order, in C's or Fortran's order (which is read as a whole). All arrays have the same type
/// and rows of the same shape. Files whose names end with ".npz" are archives, as numpy.savez and savez_compressed
/// write them: each array is a column of its name, and all have equally many rows; wanted arrays are read as a whole.
/// Throws like read_images, and InvalidArgument for .npy and .npz files together; an execution throws StorageError,
/// with the file, for a file that is damaged, ends early, has pickled objects, or differs from the others.
Dataset read_numpy(const std::vector<std::string>& paths, const NumpyOptions& options = {});
/// Does the same with one path.
Dataset read_numpy(const std::string& path, const NumpyOptions& options = {});

/// Options of read_tfrecords.
struct TfRecordsOptions {
  /// Types by feature: "int64", "float", "binary", "string" (bytes in UTF-8), or lists of these, "list<item: int64>".
  /// Default: found out from the first megabyte of the first file and the first 64 KiB of the others.
  std::vector<std::pair<std::string, std::string>> types = {};
  OnError on_error = OnError::fail;               ///< see OnError; a record whose length is damaged ends its file
  bool include_paths = false;                     ///< adds a column "path"
  bool ignore_missing_paths = false;              ///< see ImageOptions
  std::vector<std::string> file_extensions = {};  ///< see ImageOptions; empty: all files
};
/// Reads TensorFlow's files of records with messages of type tf.train.Example: each is a row, and each feature a column
/// of integers, floats or bytes. A feature that has more than one value anywhere is a column of lists; one without
/// values is null. Files whose names end with ".gz", ".zst", ".bz2" or ".lz4" are decompressed. Checksums are verified.
/// The number of rows is only known after reading. Throws like read_images; an execution throws StorageError, with the
/// file and the row, for a damaged record and a file that ends early, and InvalidArgument for a feature that does not
/// fit its type: give `types` then.
Dataset read_tfrecords(const std::vector<std::string>& paths, const TfRecordsOptions& options = {});
/// Does the same with one path.
Dataset read_tfrecords(const std::string& path, const TfRecordsOptions& options = {});

/// Options of read_webdataset.
struct WebDatasetOptions {
  /// If true, files are decoded by their last extension: txt and text to texts, cls and cls2 to integers, jpg, jpeg and
  /// png to images (see decode_image), npy to arrays (see read_numpy), and json to values of the types that the first
  /// samples have. Others, and all if false, are bytes.
  bool decode = true;
  /// Suffixes that become columns, "jpg" or "left.jpg", or patterns with * and ? for a suffix with its dot, ".*.jpg".
  /// Default: all.
  std::vector<std::string> suffixes = {};
  ImageSize size = {};                            ///< of images; see DecodeImageOptions::size
  ImageMode mode = ImageMode::stored;             ///< of images; see ImageMode
  OnError on_error = OnError::fail;               ///< see OnError; a damaged archive ends with the sample before
  bool include_paths = false;                     ///< adds a column "path", which has what "__url__" has
  bool ignore_missing_paths = false;              ///< see ImageOptions
  std::vector<std::string> file_extensions = {};  ///< see ImageOptions; empty: all files
};
/// Reads WebDatasets: tar archives in which consecutive files with the same name up to the first dot are a sample,
/// which is a row. The columns are "__key__", that name with its folders, one for each suffix behind the dot, and
/// "__url__", the archive. A sample without a file of some suffix has a null there. Suffixes are those of the samples
/// in the first megabyte of the first archive, and what `suffixes` names. Images and arrays are tensors of variable
/// shape, as those of read_images, unless a size and a mode are given. Archives of POSIX and GNU tar are read, and
/// decompressed if their names end with ".gz", ".zst", ".bz2" or ".lz4". The number of rows is only known after
/// reading. Throws like read_images; an execution throws StorageError, with the archive, the row and the sample, for an
/// archive that ends early, a damaged file, and samples whose files are not next to each other, and InvalidArgument for
/// a suffix that is no column and a file that does not fit its column.
Dataset read_webdataset(const std::vector<std::string>& paths, const WebDatasetOptions& options = {});
/// Does the same with one path.
Dataset read_webdataset(const std::string& path, const WebDatasetOptions& options = {});

/// Returns the rows of a read, or of rows in memory, with a column of their numbers, from 0 on in their order. They are
/// the same in every shard and with any number of workers, so that a function of batches can draw random numbers for
/// each row that depend on nothing else than a seed, the epoch (CallContext) and the row, with KeyedRandom::of_example
/// (cadre/random.h). Files that do not know their number of rows are read to count them, before the execution begins.
/// Executions throw InvalidArgument if there is such a column already, and for a dataset with functions or conditions,
/// after which rows have other numbers than in the read: call this first.
Dataset with_row_numbers(const Dataset& dataset, const std::string& column = "row");

}  // namespace cadre::data
