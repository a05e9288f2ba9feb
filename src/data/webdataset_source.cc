// WebDatasets: tar archives whose samples are rows. Each archive is one piece, which is read from its beginning.
#include <arrow/array.h>
#include <arrow/array/concatenate.h>
#include <arrow/array/util.h>
#include <arrow/buffer.h>
#include <arrow/builder.h>
#include <arrow/io/memory.h>
#include <arrow/json/api.h>
#include <arrow/record_batch.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <arrow/util/bitmap_builders.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "base/json.h"
#include "base/utf8.h"
#include "cadre/data/image.h"
#include "cadre/error.h"
#include "data/arrow_status.h"
#include "data/file_columns.h"
#include "data/file_rows.h"
#include "data/image_modes.h"
#include "data/json_depth.h"
#include "data/npy_header.h"
#include "data/picture.h"
#include "data/source.h"
#include "data/tensor_columns.h"
#include "data/web_samples.h"

namespace cadre::data {
namespace {

constexpr std::int64_t kFirstMemberBytes = std::int64_t{1}
                                           << 20;  // at the beginning of the first archive, for the columns
constexpr const char* kKey = "__key__";
constexpr const char* kUrl = "__url__";
constexpr const char* kMakingMembers = "cannot make a column of a WebDataset";
constexpr const char* kNotDecoded = "read the archives with `decode` off, which leaves bytes as they are";

enum class MemberKind { bytes, text, integer, image, array, json };

// The column of the files with a suffix.
struct MemberColumn {
  std::string suffix = {};
  MemberKind kind = MemberKind::bytes;
  std::shared_ptr<arrow::Field> field = {};
  std::vector<std::int64_t> shape = {};  // of all images; empty: any shape
  std::size_t dimensions = 0;            // of images and arrays
};

// The options of a read for its members.
struct MemberOptions {
  bool decodes = true;
  DecodeImageOptions images = {};
};

std::string_view content_of(const arrow::Buffer& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), static_cast<std::size_t>(bytes.size())};
}

MemberKind kind_of(const std::string& suffix, const MemberOptions& options) {
  if (!options.decodes) return MemberKind::bytes;
  std::string extension = suffix.substr(suffix.rfind('.') + 1);
  std::ranges::transform(extension, extension.begin(), [](unsigned char c) { return std::tolower(c); });
  if (extension == "txt" || extension == "text") return MemberKind::text;
  if (extension == "cls" || extension == "cls2") return MemberKind::integer;
  if (extension == "jpg" || extension == "jpeg" || extension == "png") return MemberKind::image;
  if (extension == "npy") return MemberKind::array;
  if (extension == "json") return MemberKind::json;
  return MemberKind::bytes;
}

// ---- The columns of a block

class MemberBuilder {
 public:
  virtual ~MemberBuilder() = default;
  // Decodes a member, null if the sample has none, for add(). Throws StorageError for a damaged one.
  virtual void decode(const arrow::Buffer* bytes) = 0;
  // Adds the member that was decoded last.
  virtual void add() = 0;
  virtual std::int64_t bytes() const = 0;
  virtual std::shared_ptr<arrow::Array> finish() = 0;
};

class TextBuilder final : public MemberBuilder {
 public:
  TextBuilder(bool is_text, arrow::MemoryPool* pool) : is_text_(is_text) {
    if (is_text) {
      builder_ = std::make_unique<arrow::StringBuilder>(pool);
    } else {
      builder_ = std::make_unique<arrow::BinaryBuilder>(pool);
    }
  }
  void decode(const arrow::Buffer* bytes) override {
    if (bytes != nullptr && is_text_ && !base::is_utf8(content_of(*bytes)))
      throw StorageError(fmt::format("it is not UTF-8: {}", kNotDecoded));
    decoded_ = bytes;
  }
  void add() override {
    check(decoded_ != nullptr ? builder_->Append(content_of(*decoded_)) : builder_->AppendNull(), kMakingMembers);
  }
  std::int64_t bytes() const override { return builder_->value_data_length(); }
  std::shared_ptr<arrow::Array> finish() override { return checked(builder_->Finish(), kMakingMembers); }

 private:
  bool is_text_;
  std::unique_ptr<arrow::BinaryBuilder> builder_;
  const arrow::Buffer* decoded_ = nullptr;
};

class IntegerBuilder final : public MemberBuilder {
 public:
  explicit IntegerBuilder(arrow::MemoryPool* pool) : builder_(pool) {}
  void decode(const arrow::Buffer* bytes) override {
    constexpr std::string_view kSpace = " \t\r\n";
    decoded_.reset();
    if (bytes == nullptr) return;
    std::string_view text = content_of(*bytes);
    text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
    text = text.substr(0, text.find_last_not_of(kSpace) + 1);
    if (text.starts_with('+')) text.remove_prefix(1);
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
      throw StorageError(fmt::format("it is no integer of 64 bits: {}", kNotDecoded));
    decoded_ = number;
  }
  void add() override { check(decoded_ ? builder_.Append(*decoded_) : builder_.AppendNull(), kMakingMembers); }
  std::int64_t bytes() const override { return builder_.length() * std::int64_t{sizeof(std::int64_t)}; }
  std::shared_ptr<arrow::Array> finish() override { return checked(builder_.Finish(), kMakingMembers); }

 private:
  arrow::Int64Builder builder_;
  std::optional<std::int64_t> decoded_;
};

// Images and arrays.
class TensorBuilder final : public MemberBuilder {
 public:
  TensorBuilder(const MemberColumn& column, const MemberOptions& options, arrow::MemoryPool* pool)
      : column_(column), options_(options), pool_(pool) {}

  void decode(const arrow::Buffer* bytes) override {
    values_.reset();
    if (bytes == nullptr) return;
    if (column_.kind == MemberKind::image) {
      Image image = decode_image(content_of(*bytes), options_.images);
      shape_ = image.shape();
      const auto count = std::ssize(image.pixels);
      values_ = std::make_shared<arrow::UInt8Array>(count, arrow::Buffer::FromVector(std::move(image.pixels)));
    } else {
      decode_array(*bytes);
    }
    if (shape_.size() != column_.dimensions)
      throw InvalidArgument(fmt::format(
          "it has the shape {}, and others have {} dimensions: {}", fmt::join(shape_, " x "), column_.dimensions,
          column_.kind == MemberKind::image ? "give a `mode`, such as ImageMode::rgb" : kNotDecoded));
  }
  void add() override {
    are_valid_.push_back(values_ != nullptr ? 1 : 0);
    shapes_.push_back(values_ != nullptr       ? shape_
                      : !column_.shape.empty() ? column_.shape
                                               : std::vector<std::int64_t>(column_.dimensions, 0));
    if (values_ == nullptr && !column_.shape.empty()) {
      std::int64_t count = 1;
      for (const std::int64_t width : column_.shape) count *= width;
      values_ = checked(arrow::MakeArrayFromScalar(arrow::UInt8Scalar(0), count, pool_), kMakingMembers);
    }
    if (values_ == nullptr) return;
    bytes_ += values_->length() * std::max(values_->type()->byte_width(), 1);
    arrays_.push_back(std::move(values_));
  }
  std::int64_t bytes() const override { return bytes_; }
  std::shared_ptr<arrow::Array> finish() override {
    if (arrays_.empty()) arrays_.push_back(checked(arrow::MakeEmptyArray(value_type(), pool_), kMakingMembers));
    const auto values = checked(arrow::Concatenate(std::exchange(arrays_, {}), pool_), kMakingMembers);
    const auto shapes = std::exchange(shapes_, {});
    const auto are_valid = std::exchange(are_valid_, {});
    bytes_ = 0;
    const auto tensors = column_.shape.empty() ? make_variable_tensors(*column_.field, values, shapes)
                                               : make_tensors(values, column_.shape);
    if (std::ranges::find(are_valid, 0) == are_valid.end()) return tensors;
    const auto data = tensors->data()->Copy();
    data->buffers[0] = checked(arrow::internal::BytesToBits(are_valid, pool_), kMakingMembers);
    data->null_count = std::ranges::count(are_valid, 0);
    return arrow::MakeArray(data);
  }

 private:
  std::shared_ptr<arrow::DataType> value_type() const {
    if (!column_.shape.empty()) return arrow::uint8();
    return static_cast<const arrow::BaseListType&>(*column_.field->type()->field(0)->type()).value_type();
  }
  void decode_array(const arrow::Buffer& bytes) {
    const NpyHeader header = parse_npy_header(content_of(bytes), bytes.size());
    if (!header.value_type()->Equals(value_type()))
      throw InvalidArgument(fmt::format("its values are of {}, and those of others of {}: {}",
                                        header.value_type()->ToString(), value_type()->ToString(), kNotDecoded));
    const std::int64_t size = header.rows() * header.row_bytes();
    const auto content = arrow::Buffer::FromString(std::string(
        content_of(bytes).substr(static_cast<std::size_t>(header.data_begin), static_cast<std::size_t>(size))));
    shape_ = header.shape;
    values_ = make_npy_values(header, to_c_order(header, content, pool_), header.rows(), pool_);
  }

  const MemberColumn& column_;
  const MemberOptions& options_;
  arrow::MemoryPool* pool_;
  std::shared_ptr<arrow::Array> values_;  // decoded; null: the sample has none
  std::vector<std::int64_t> shape_;
  arrow::ArrayVector arrays_;
  std::vector<std::vector<std::int64_t>> shapes_;
  std::vector<std::uint8_t> are_valid_;
  std::int64_t bytes_ = 0;
};

// Checks the syntax of a text of JSON, and removes its line ends.
std::string one_line_of_json(std::string_view text) {
  base::parse_json(text, "its JSON");
  std::string line(text);
  std::ranges::replace(line, '\n', ' ');
  std::ranges::replace(line, '\r', ' ');
  return line;
}

// Parses objects that have the values under the name "json".
std::shared_ptr<arrow::RecordBatch> parse_objects(const std::string& lines,
                                                  const std::shared_ptr<arrow::Field>& field) {
  auto parsing = arrow::json::ParseOptions::Defaults();
  parsing.unexpected_field_behavior = arrow::json::UnexpectedFieldBehavior::InferType;
  if (field != nullptr) {
    parsing.explicit_schema = arrow::schema({field->WithName("json")});
    parsing.unexpected_field_behavior = arrow::json::UnexpectedFieldBehavior::Error;
  }
  JsonDepth depth;
  check(depth.add(lines), "cannot read JSON");
  const auto parsed = arrow::json::ParseOne(parsing, arrow::Buffer::FromString(lines));
  if (!parsed.ok())
    throw StorageError(fmt::format("JSON of a sample does not have the types of the first ones: {}; {}",
                                   parsed.status().message(), kNotDecoded));
  return *parsed;
}

class JsonBuilder final : public MemberBuilder {
 public:
  explicit JsonBuilder(const MemberColumn& column) : column_(column) {}
  void decode(const arrow::Buffer* bytes) override {
    decoded_ = bytes != nullptr ? one_line_of_json(content_of(*bytes)) : "null";
  }
  void add() override { lines_ += "{\"json\": " + decoded_ + "}\n"; }
  std::int64_t bytes() const override { return std::ssize(lines_); }
  std::shared_ptr<arrow::Array> finish() override {
    return parse_objects(std::exchange(lines_, ""), column_.field)->column(0);
  }

 private:
  const MemberColumn& column_;
  std::string decoded_;
  std::string lines_;
};

std::unique_ptr<MemberBuilder> make_builder(const MemberColumn& column, const MemberOptions& options,
                                            arrow::MemoryPool* pool) {
  switch (column.kind) {
    case MemberKind::integer:
      return std::make_unique<IntegerBuilder>(pool);
    case MemberKind::image:
    case MemberKind::array:
      return std::make_unique<TensorBuilder>(column, options, pool);
    case MemberKind::json:
      return std::make_unique<JsonBuilder>(column);
    case MemberKind::bytes:
    case MemberKind::text:
      break;
  }
  return std::make_unique<TextBuilder>(column.kind == MemberKind::text, pool);
}

// Builds the columns of samples: the key, those of the suffixes, and the archive.
class SampleColumns {
 public:
  // `decodes_all`: also what is not wanted, because a row with a damaged member is left out.
  SampleColumns(const std::vector<MemberColumn>& columns, const MemberOptions& options, const FileColumns& files,
                bool decodes_all, std::string url, arrow::MemoryPool* pool)
      : columns_(columns), url_(std::move(url)), pool_(pool), keys_(pool) {
    for (const MemberColumn& column : columns) {
      are_wanted_.push_back(files.wants(column.suffix));
      builders_.push_back(are_wanted_.back() || decodes_all ? make_builder(column, options, pool) : nullptr);
    }
  }

  void add(const WebSample& sample) {
    for (const auto& [suffix, content] : sample.members) {
      if (std::ranges::find(columns_, suffix, &MemberColumn::suffix) == columns_.end())
        throw InvalidArgument(
            fmt::format("the sample \"{}\" has a file \".{}\", which those at the beginning of the first "
                        "archive do not have: name the wanted suffixes with `suffixes`",
                        sample.key, suffix));
    }
    for_each_builder([&](MemberBuilder& builder, const std::string& suffix) {
      const auto message = [&](const Error& error) {
        return fmt::format("the sample \"{}\", file \".{}\": {}", sample.key, suffix, error.what());
      };
      try {
        builder.decode(sample.find(suffix));
      } catch (const StorageError& error) {
        throw StorageError(message(error));
      } catch (const InvalidArgument& error) {
        throw InvalidArgument(message(error));
      }
    });
    for (std::size_t i = 0; i < builders_.size(); ++i) {
      if (are_wanted_[i]) builders_[i]->add();
    }
    check(keys_.Append(sample.key), kMakingMembers);
  }
  std::int64_t bytes() const {
    std::int64_t bytes = keys_.value_data_length();
    for (const auto& builder : builders_) bytes += builder != nullptr ? builder->bytes() : 0;
    return bytes;
  }
  arrow::ArrayVector finish() {
    const std::int64_t rows = keys_.length();
    arrow::ArrayVector arrays{checked(keys_.Finish(), kMakingMembers)};
    for (std::size_t i = 0; i < builders_.size(); ++i)
      arrays.push_back(are_wanted_[i] ? builders_[i]->finish() : nullptr);
    arrays.push_back(checked(arrow::MakeArrayFromScalar(arrow::StringScalar(url_), rows, pool_), kMakingMembers));
    return arrays;
  }

 private:
  template <class Use>
  void for_each_builder(Use use) {
    for (std::size_t i = 0; i < builders_.size(); ++i) {
      if (builders_[i] != nullptr) use(*builders_[i], columns_[i].suffix);
    }
  }

  const std::vector<MemberColumn>& columns_;
  std::string url_;
  arrow::MemoryPool* pool_;
  arrow::StringBuilder keys_;
  std::vector<bool> are_wanted_;
  std::vector<std::unique_ptr<MemberBuilder>> builders_;  // null: the column is not decoded
};

class WebArchives final : public PieceReader {
 public:
  WebArchives(FileColumns files, std::vector<MemberColumn> columns, MemberOptions options, const ReadFiles& read)
      : files_(std::move(files)),
        columns_(std::move(columns)),
        options_(options),
        suffixes_(read.suffixes),
        skips_damaged_(read.skip_damaged) {}

  void read(const Piece& piece, const ReadContext& context, const Emit& emit) const override {
    const InputFile& file = files_.files()[static_cast<std::size_t>(piece.number)];
    FileRowCollector<SampleColumns> rows(files_, piece, context, emit, skips_damaged_, [&] {
      return std::make_unique<SampleColumns>(columns_, options_, files_, skips_damaged_, file.shown, context.pool);
    });
    const auto is_known = [&](std::string_view suffix) {
      return std::ranges::find(columns_, suffix, &MemberColumn::suffix) != columns_.end();
    };
    WebSamples samples(file, [&](std::string_view suffix) {
      return fits_suffix(suffix, suffixes_) && (skips_damaged_ || files_.wants(suffix) || !is_known(suffix));
    });
    while (!rows.is_over()) {
      std::optional<WebSample> sample;
      try {
        sample = samples.next();
      } catch (const StorageError& error) {
        rows.skip(error);
        break;
      }
      if (!sample) break;
      rows.add([&](SampleColumns& columns) { columns.add(*sample); });
    }
    rows.finish_block();
  }

 private:
  FileColumns files_;
  std::vector<MemberColumn> columns_;
  MemberOptions options_;
  Names suffixes_;
  bool skips_damaged_;
};

// ---- The columns of a dataset

// Returns the first samples of the first archive that has some. Damage is reported when the rows are read.
std::vector<WebSample> first_samples(const ReadFiles& read, const std::vector<InputFile>& files) {
  std::vector<WebSample> samples;
  for (const InputFile& file : files) {
    std::int64_t bytes = 0;
    try {
      WebSamples archive(file, [&](std::string_view suffix) { return fits_suffix(suffix, read.suffixes); });
      while (bytes < kFirstMemberBytes) {
        auto sample = archive.next();
        if (!sample) break;
        for (const auto& [suffix, content] : sample->members) bytes += content->size();
        samples.push_back(*std::move(sample));
      }
    } catch (const StorageError&) {
    }
    if (!samples.empty()) break;
  }
  return samples;
}

std::shared_ptr<arrow::Field> json_field(const std::string& suffix, const std::vector<WebSample>& samples) {
  std::string lines;
  for (const WebSample& sample : samples) {
    const arrow::Buffer* const content = sample.find(suffix);
    if (content == nullptr) continue;
    try {
      lines += "{\"json\": " + one_line_of_json(content_of(*content)) + "}\n";
    } catch (const StorageError&) {
    }
  }
  const auto type = lines.empty() ? arrow::utf8() : parse_objects(lines, nullptr)->column(0)->type();
  return arrow::field(suffix, type->id() == arrow::Type::NA ? arrow::utf8() : type);
}

// Sets the shape and the type of a column of tensors from the first member that can be read.
void set_tensor_type(MemberColumn& column, const std::vector<WebSample>& samples, const MemberOptions& options) {
  auto value_type = arrow::uint8();
  column.dimensions = column.kind == MemberKind::image ? 3 : 1;
  if (column.kind == MemberKind::image) column.shape = shape_of(options.images).value_or(std::vector<std::int64_t>());
  for (const WebSample& sample : samples) {
    const arrow::Buffer* const content = sample.find(column.suffix);
    if (content == nullptr) continue;
    try {
      if (column.kind == MemberKind::image) {
        column.dimensions = shape_of(make_picture_decoder(content_of(*content))->header(), options.images).size();
      } else {
        const NpyHeader header = parse_npy_header(content_of(*content), content->size());
        column.dimensions = header.shape.size();
        value_type = header.value_type();
      }
      break;
    } catch (const StorageError&) {
    } catch (const InvalidArgument&) {
    }
  }
  if (!column.shape.empty()) column.dimensions = column.shape.size();
  column.field = column.shape.empty() ? variable_tensor_field(column.suffix, value_type, column.dimensions)
                                      : arrow::field(column.suffix, tensor_type(value_type, column.shape));
}

std::vector<MemberColumn> find_members(const ReadFiles& read, const std::vector<InputFile>& files,
                                       const MemberOptions& options) {
  const std::vector<WebSample> samples = first_samples(read, files);
  Names suffixes;
  const auto add = [&](const std::string& suffix) {
    if (std::ranges::find(suffixes, suffix) == suffixes.end()) suffixes.push_back(suffix);
  };
  for (const WebSample& sample : samples) {
    for (const auto& [suffix, content] : sample.members) add(suffix);
  }
  for (const std::string& pattern : read.suffixes) {
    if (pattern.find_first_of("*?") == pattern.npos) add(pattern.substr(pattern.starts_with('.') ? 1 : 0));
  }
  std::vector<MemberColumn> columns;
  for (const std::string& suffix : suffixes) {
    MemberColumn column{.suffix = suffix, .kind = kind_of(suffix, options)};
    switch (column.kind) {
      case MemberKind::bytes:
        column.field = arrow::field(suffix, arrow::binary());
        break;
      case MemberKind::text:
        column.field = arrow::field(suffix, arrow::utf8());
        break;
      case MemberKind::integer:
        column.field = arrow::field(suffix, arrow::int64());
        break;
      case MemberKind::image:
      case MemberKind::array:
        set_tensor_type(column, samples, options);
        break;
      case MemberKind::json:
        column.field = json_field(suffix, samples);
        break;
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace

Source open_webdataset(const ReadFiles& read) {
  FileColumns files(read);
  const MemberOptions options{
      .decodes = read.decode,
      .images = {.size = {.height = read.image_height, .width = read.image_width}, .mode = read.image_mode}};
  std::vector<MemberColumn> columns = find_members(read, files.files(), options);
  arrow::FieldVector fields{arrow::field(kKey, arrow::utf8())};
  for (const MemberColumn& column : columns) fields.push_back(column.field);
  fields.push_back(arrow::field(kUrl, arrow::utf8()));
  files.set_own(fields);
  Source source{.name = "read_webdataset", .schema = files.schema()};
  std::vector<std::int64_t> sizes;
  for (const InputFile& file : files.files()) sizes.push_back(file.is_compressed() ? file.size * 4 : file.size);
  const auto reader = std::make_shared<WebArchives>(std::move(files), std::move(columns), options, read);
  for (const std::int64_t bytes : sizes)
    source.pieces.push_back(
        {.reader = reader, .number = std::ssize(source.pieces), .bytes = bytes, .overhead_bytes = kFirstMemberBytes});
  return source;
}

}  // namespace cadre::data
