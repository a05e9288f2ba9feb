// TensorFlow's files of records with messages of type tf.train.Example: each file is one piece, which is read from its
// beginning.
#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/io/buffered.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/utf8.h"
#include "cadre/error.h"
#include "data/arrow_status.h"
#include "data/file_columns.h"
#include "data/file_rows.h"
#include "data/side_by_side.h"
#include "data/source.h"
#include "data/tf_example.h"
#include "data/tf_records.h"

namespace cadre::data {
namespace {

constexpr std::int64_t kRecordBufferBytes = std::int64_t{1} << 20;
constexpr std::int64_t kFirstRecordBytes = std::int64_t{1} << 20;   // of the first file, for the columns
constexpr std::int64_t kOtherRecordBytes = std::int64_t{64} << 10;  // of each other file
constexpr const char* kKeeping = "cannot keep a feature";

// The column of a feature.
struct FeatureColumn {
  std::string name = {};
  std::size_t kind = 0;  // index in FeatureValues; 0: no value was found
  bool is_list = false;
  bool is_text = false;  // of bytes: in UTF-8
};

std::shared_ptr<arrow::DataType> type_of(const FeatureColumn& column) {
  const auto type = column.kind == 1   ? (column.is_text ? arrow::utf8() : arrow::binary())
                    : column.kind == 2 ? arrow::float32()
                    : column.kind == 3 ? arrow::int64()
                                       : arrow::null();
  return column.is_list ? arrow::list(type) : type;
}

const char* name_of_kind(std::size_t kind) {
  constexpr const char* kNames[] = {"no values", "bytes", "floats", "integers"};
  return kNames[kind];
}

const char* type_of_kind(std::size_t kind) {
  constexpr const char* kNames[] = {"null", "binary", "float", "int64"};
  return kNames[kind];
}

std::size_t count_of(const FeatureValues& values) {
  return std::visit(
      [](const auto& all) -> std::size_t {
        if constexpr (requires { all.size(); }) return all.size();
        return 0;
      },
      values);
}

TfRecords open_records(const InputFile& file) {
  const std::string doing = "cannot read " + file.shown;
  auto stream = file.open_stream();
  return {checked(arrow::io::BufferedInputStream::Create(kRecordBufferBytes, arrow::default_memory_pool(),
                                                         std::move(stream)),
                  doing),
          doing};
}

// Builds the column of a feature.
class FeatureBuilder {
 public:
  FeatureBuilder(FeatureColumn column, arrow::MemoryPool* pool)
      : column_(std::move(column)), builder_(checked(arrow::MakeBuilder(data::type_of(column_), pool), kKeeping)) {}

  // Throws StorageError if the values do not fit; null: the row does not have the feature.
  void check_fit(const Feature* feature) const {
    if (feature == nullptr || count_of(feature->values) == 0) return;
    const std::size_t count = count_of(feature->values);
    const auto refuse = [&](const std::string& difference) {
      throw InvalidArgument(
          fmt::format("the feature \"{0}\" has {1}; say with `types` what it is: {{\"{0}\", "
                      "\"list<item: {2}>\"}} or the like",
                      column_.name, difference, type_of_kind(feature->values.index())));
    };
    if (feature->values.index() != column_.kind)
      refuse(fmt::format("{}, and elsewhere {}", name_of_kind(feature->values.index()), name_of_kind(column_.kind)));
    if (!column_.is_list && count != 1) refuse(fmt::format("{} values, and at the beginnings of the files one", count));
    if (!column_.is_text) return;
    for (const std::string_view text : std::get<1>(feature->values)) {
      if (!base::is_utf8(text))
        throw StorageError(fmt::format("the feature \"{}\" is not UTF-8: read it as \"binary\"", column_.name));
    }
  }
  void add(const Feature* feature) {
    if (feature == nullptr || column_.kind == 0 || feature->values.index() == 0 ||
        (!column_.is_list && count_of(feature->values) == 0))
      return check(builder_->AppendNull(), kKeeping);
    arrow::ArrayBuilder* values = builder_.get();
    if (column_.is_list) {
      auto* const lists = static_cast<arrow::ListBuilder*>(builder_.get());
      check(lists->Append(), kKeeping);
      values = lists->value_builder();
    }
    if (count_of(feature->values) == 0) return;
    if (column_.kind == 1) {
      for (const std::string_view text : std::get<1>(feature->values))
        check(static_cast<arrow::BinaryBuilder*>(values)->Append(text), kKeeping);
    } else if (column_.kind == 2) {
      check(static_cast<arrow::FloatBuilder*>(values)->AppendValues(std::get<2>(feature->values)), kKeeping);
    } else {
      check(static_cast<arrow::Int64Builder*>(values)->AppendValues(std::get<3>(feature->values)), kKeeping);
    }
  }
  const std::string& name() const { return column_.name; }
  std::shared_ptr<arrow::Array> finish() { return checked(builder_->Finish(), kKeeping); }

 private:
  FeatureColumn column_;
  std::unique_ptr<arrow::ArrayBuilder> builder_;
};

// Builds the columns of all features.
class ExampleColumns {
 public:
  // `checks_all`: also what is not wanted, because a row with a damaged feature is left out.
  ExampleColumns(const std::vector<FeatureColumn>& columns, const FileColumns& files, bool checks_all,
                 arrow::MemoryPool* pool) {
    for (const FeatureColumn& column : columns) {
      names_.push_back(column.name);
      are_wanted_.push_back(files.wants(column.name));
      builders_.push_back(are_wanted_.back() || checks_all ? std::make_unique<FeatureBuilder>(column, pool) : nullptr);
    }
  }

  void add(std::string_view record) {
    const std::vector<Feature> features = parse_example(record);
    for (const Feature& feature : features) {
      if (std::ranges::find(names_, feature.name) == names_.end())
        throw InvalidArgument(
            fmt::format("it has a feature \"{0}\", which the beginnings of the files do not have: say "
                        "with `types` what it is, {{\"{0}\", \"int64\"}} or the like",
                        feature.name));
    }
    std::vector<const Feature*> of_columns;
    for (const auto& builder : builders_) {
      const auto found =
          builder != nullptr ? std::ranges::find(features, builder->name(), &Feature::name) : features.end();
      of_columns.push_back(found == features.end() ? nullptr : &*found);
      if (builder != nullptr) builder->check_fit(of_columns.back());
    }
    for (std::size_t i = 0; i < builders_.size(); ++i) {
      if (are_wanted_[i]) builders_[i]->add(of_columns[i]);
    }
    bytes_ += std::ssize(record);
  }
  std::int64_t bytes() const { return bytes_; }
  arrow::ArrayVector finish() {
    arrow::ArrayVector arrays;
    for (std::size_t i = 0; i < builders_.size(); ++i)
      arrays.push_back(are_wanted_[i] ? builders_[i]->finish() : nullptr);
    bytes_ = 0;
    return arrays;
  }

 private:
  Names names_;
  std::vector<bool> are_wanted_;
  std::vector<std::unique_ptr<FeatureBuilder>> builders_;  // null: the column is not checked
  std::int64_t bytes_ = 0;
};

class TfRecordFiles final : public PieceReader {
 public:
  TfRecordFiles(FileColumns files, std::vector<FeatureColumn> columns, bool skips_damaged)
      : files_(std::move(files)), columns_(std::move(columns)), skips_damaged_(skips_damaged) {}

  void read(const Piece& piece, const ReadContext& context, const Emit& emit) const override {
    FileRowCollector<ExampleColumns> rows(files_, piece, context, emit, skips_damaged_, [&] {
      return std::make_unique<ExampleColumns>(columns_, files_, skips_damaged_, context.pool);
    });
    TfRecords records = open_records(files_.files()[static_cast<std::size_t>(piece.number)]);
    while (!rows.is_over()) {
      std::optional<std::string_view> record;
      try {
        record = records.next();
      } catch (const StorageError& error) {
        rows.skip(error);
        if (!records.can_continue()) break;
        continue;
      }
      if (!record) break;
      rows.add([&](ExampleColumns& columns) { columns.add(*record); });
    }
    rows.finish_block();
  }

 private:
  FileColumns files_;
  std::vector<FeatureColumn> columns_;
  bool skips_damaged_;
};

// ---- The columns of a dataset

void merge(std::vector<FeatureColumn>& columns, const FeatureColumn& seen, const std::string& file) {
  const auto known = std::ranges::find(columns, seen.name, &FeatureColumn::name);
  if (known == columns.end()) return columns.push_back(seen);
  if (known->kind != 0 && seen.kind != 0 && known->kind != seen.kind)
    throw StorageError(fmt::format("cannot read {}: the feature \"{}\" has {}, and elsewhere {}", file, seen.name,
                                   name_of_kind(seen.kind), name_of_kind(known->kind)));
  known->kind = std::max(known->kind, seen.kind);
  known->is_list = known->is_list || seen.is_list;
}

// Returns the features at the beginning of a file. Damage is reported when its rows are read.
std::vector<FeatureColumn> look_at_beginning(const InputFile& file, std::int64_t most_bytes) {
  std::vector<FeatureColumn> columns;
  TfRecords records = open_records(file);
  std::int64_t bytes = 0;
  while (bytes < most_bytes) {
    try {
      const auto record = records.next();
      if (!record) break;
      bytes += std::ssize(*record);
      for (const Feature& feature : parse_example(*record)) {
        const std::size_t count = count_of(feature.values);
        merge(
            columns,
            {.name = std::string(feature.name), .kind = count == 0 ? 0 : feature.values.index(), .is_list = count > 1},
            file.shown);
      }
    } catch (const StorageError&) {
      break;
    }
  }
  return columns;
}

FeatureColumn to_column(const std::string& name, const std::string& type) {
  const std::map<std::string, FeatureColumn> types = {{"int64", {.kind = 3}},
                                                      {"float", {.kind = 2}},
                                                      {"binary", {.kind = 1}},
                                                      {"string", {.kind = 1, .is_text = true}}};
  constexpr std::string_view kList = "list<item: ";
  const bool is_list = type.starts_with(kList) && type.ends_with('>');
  const auto found = types.find(is_list ? type.substr(kList.size(), type.size() - kList.size() - 1) : type);
  if (found == types.end())
    throw InvalidArgument(
        fmt::format("column \"{}\": a TFRecord file has no values of type \"{}\", but of int64, float, "
                    "binary and string, and lists of them, such as \"list<item: int64>\"",
                    name, type));
  FeatureColumn column = found->second;
  column.name = name;
  column.is_list = is_list;
  return column;
}

std::vector<FeatureColumn> find_columns(const ReadFiles& read, const std::vector<InputFile>& files) {
  std::vector<std::vector<FeatureColumn>> of_files(files.size());
  side_by_side(files.size(), [&](std::size_t number) {
    of_files[number] = look_at_beginning(files[number], number == 0 ? kFirstRecordBytes : kOtherRecordBytes);
  });
  std::vector<FeatureColumn> columns;
  for (std::size_t number = 0; number < files.size(); ++number) {
    for (const FeatureColumn& column : of_files[number]) {
      const bool is_said = std::ranges::any_of(read.types, [&](const auto& one) { return one.first == column.name; });
      merge(columns, is_said ? FeatureColumn{.name = column.name} : column, files[number].shown);
    }
  }
  for (const auto& [name, type] : read.types) {
    FeatureColumn column = to_column(name, type);
    const auto known = std::ranges::find(columns, name, &FeatureColumn::name);
    if (known == columns.end()) {
      columns.push_back(std::move(column));
    } else {
      *known = std::move(column);
    }
  }
  return columns;
}

}  // namespace

Source open_tf_records(const ReadFiles& read) {
  FileColumns files(read);
  std::vector<FeatureColumn> columns = find_columns(read, files.files());
  arrow::FieldVector fields;
  for (const FeatureColumn& column : columns) fields.push_back(arrow::field(column.name, type_of(column)));
  files.set_own(fields);
  Source source{.name = "read_tfrecords", .schema = files.schema()};
  std::vector<std::int64_t> sizes;
  for (const InputFile& file : files.files()) sizes.push_back(file.is_compressed() ? file.size * 4 : file.size);
  const auto reader = std::make_shared<TfRecordFiles>(std::move(files), std::move(columns), read.skip_damaged);
  for (const std::int64_t bytes : sizes)
    source.pieces.push_back({.reader = reader,
                             .number = std::ssize(source.pieces),
                             .bytes = bytes,
                             .overhead_bytes = std::min(2 * bytes, 2 * kRecordBufferBytes)});
  return source;
}

}  // namespace cadre::data
