// Rows, lists and manifests with crafted contents and correct checksums: every reader returns a result or throws an
// error, and nothing outside of the directory changes. Environment: CADRE_CRAFTED_ROWS, the number of rows;
// CADRE_CRAFTED_KEEP, a folder that gets the directories that were not read correctly; CADRE_CRAFTED_READ, one of these
// to read again.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <variant>

#include "base/checksum.h"
#include "base/json.h"
#include "cadre/train.h"
#include "cadre/tune.h"
#include "control/object_uses.h"
#include "publish/manifest.h"
#include "storage/remote_directory.h"
#include "store/experiment_reader.h"
#include "store/experiment_store.h"
#include "store/segment.h"
#include "support/engine_of_a_place.h"
#include "support/temporary_directory.h"
#include "survival/controller_process.h"
#include "train/options.h"
#include "train/recovery.h"
#include "training_program.h"
#include "tune/description.h"
#include "tune/recovery.h"

namespace cadre::storage_tests {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using survival::ControllerProcess;
using test_support::content_of;
using test_support::TemporaryDirectory;
using test_support::write_bytes;

using Random = std::mt19937_64;
using Cell = std::variant<std::int64_t, double, std::string>;

std::size_t below(Random& random, std::size_t end) { return random() % end; }
bool one_in(Random& random, std::size_t many) { return below(random, many) == 0; }
template <class Container>
const auto& any_of(Random& random, const Container& container) {
  return *std::next(std::begin(container), static_cast<std::ptrdiff_t>(below(random, std::size(container))));
}

// ---- Values

std::int64_t crafted_number(Random& random) {
  using Limits = std::numeric_limits<std::int64_t>;
  static const std::vector<std::int64_t> numbers{0,
                                                 1,
                                                 2,
                                                 3,
                                                 5,
                                                 -1,
                                                 -2,
                                                 7,
                                                 100,
                                                 1000,
                                                 -7,
                                                 65535,
                                                 1 << 20,
                                                 0x7fffffff,
                                                 0x80000000,
                                                 0xffffffff,
                                                 Limits::max(),
                                                 Limits::min(),
                                                 Limits::max() - 1,
                                                 -(1LL << 53)};
  return any_of(random, numbers);
}

double crafted_real(Random& random) {
  using Limits = std::numeric_limits<double>;
  static const std::vector<double> numbers{0.0,
                                           -0.0,
                                           -1,
                                           0.5,
                                           1e9,
                                           1e18,
                                           1e19,
                                           1e308,
                                           -1e308,
                                           Limits::denorm_min(),
                                           Limits::quiet_NaN(),
                                           Limits::infinity(),
                                           -Limits::infinity()};
  return any_of(random, numbers);
}

std::string crafted_text(Random& random) {
  using namespace std::string_literals;
  static const std::vector<std::string> texts{"",
                                              ".",
                                              "..",
                                              "/",
                                              "../../victim",
                                              "../../victim/checkpoint_000000",
                                              "a/../../../victim",
                                              "./../../victim",
                                              "a//b",
                                              "a/./b",
                                              "/etc/passwd",
                                              "link",
                                              "link/checkpoint_000000",
                                              "checkpoint_99999999999999999999",
                                              "x/checkpoint_-1",
                                              "checkpoint_",
                                              "\x1b[2J\x1b]0;title\a\r\n",
                                              "a\0b"s,
                                              "\xff\xfe\x80",
                                              "\xed\xa0\x80",
                                              "null",
                                              "{}",
                                              "[]",
                                              "1e999",
                                              "NaN",
                                              "{\"$reference\": [\"object\", \"../../victim\"]}",
                                              "objects/../../victim",
                                              "RUNNING",
                                              "TERMINATED",
                                              "ERROR",
                                              "launch",
                                              "exploit",
                                              "controller_started",
                                              "timer_fired",
                                              "worker_ended",
                                              "checkpoints_synced",
                                              "offered",
                                              "file:///",
                                              "%s%n",
                                              "-1"};
  if (one_in(random, 500)) return std::string(1 << 20, 'x');
  if (one_in(random, 500)) return std::string(400'000, '[');
  if (one_in(random, 500)) {
    std::string deep;
    for (int i = 0; i < 60; ++i) deep += "{\"a\":[";
    return deep;
  }
  return any_of(random, texts);
}

Value crafted_value(Random& random) {
  switch (below(random, 7)) {
    case 0:
      return {};
    case 1:
      return one_in(random, 2);
    case 2:
      return crafted_number(random);
    case 3:
      return crafted_real(random);
    case 4:
      return List{crafted_number(random), crafted_text(random)};
    case 5:
      return Dict{{crafted_text(random), crafted_number(random)}};
    default:
      return crafted_text(random);
  }
}

// Returns the value with one place changed.
Value craft(Random& random, const Value& value) {
  if (value.is_dict() && !value.dict().empty() && !one_in(random, 8)) {
    Dict entries = value.dict();
    const std::size_t at = below(random, entries.size());
    if (one_in(random, 8)) {
      entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (one_in(random, 8)) {
      entries[at].first = crafted_text(random);
    } else if (one_in(random, 16)) {
      entries.push_back(entries[at]);
    } else {
      entries[at].second = craft(random, entries[at].second);
    }
    return entries;
  }
  if (value.is_list() && !value.items().empty() && !one_in(random, 8)) {
    List items = value.items();
    Value& item = items[below(random, items.size())];
    item = craft(random, item);
    if (one_in(random, 8)) items.push_back(item);
    if (one_in(random, 16)) items.clear();
    return items;
  }
  if (value.is_string() && one_in(random, 2)) return crafted_text(random);
  if (!value.is_string() && !value.is_dict() && !value.is_list() && one_in(random, 2)) return crafted_number(random);
  return crafted_value(random);
}

std::string craft_text(Random& random, const std::string& text) {
  if (text.starts_with('{') && !one_in(random, 8)) {
    try {
      return cadre::to_json(craft(random, base::parse_json(text, "text")));
    } catch (const Error&) {
    }
  }
  return crafted_text(random);
}

Cell craft(Random& random, const Cell& cell) {
  if (one_in(random, 12)) {  // a value of another type
    switch (below(random, 3)) {
      case 0:
        return crafted_number(random);
      case 1:
        return crafted_real(random);
      default:
        return crafted_text(random);
    }
  }
  if (const auto* text = std::get_if<std::string>(&cell)) return craft_text(random, *text);
  if (std::holds_alternative<double>(cell)) return crafted_real(random);
  return one_in(random, 3) ? std::get<std::int64_t>(cell) + static_cast<std::int64_t>(below(random, 5)) - 2
                           : crafted_number(random);
}

// ---- Rows

struct TableRows {
  store::Table table;
  std::vector<std::vector<Cell>> rows;
};

template <class Row>
TableRows read_table(const store::Database& database) {
  TableRows read{Row::table, {}};
  store::RowReader<Row> reader(database);
  const auto cell = []<class T>(const T& value) -> Cell {
    if constexpr (std::same_as<T, bool>) {
      return std::int64_t{value};  // as the store has it
    } else {
      return value;
    }
  };
  while (const auto row = reader.next()) {
    std::vector<Cell>& cells = read.rows.emplace_back();
    std::apply([&](const auto&... values) { (cells.push_back(cell(values)), ...); }, Row::fields(*row));
  }
  return read;
}

std::vector<TableRows> read_tables(const fs::path& directory) {
  const store::Database database(directory / store::kStoreFileName, store::Database::Access::read_write);
  std::vector<TableRows> tables{read_table<store::ResultRow>(database),     read_table<store::EventRow>(database),
                                read_table<store::DecisionRow>(database),   read_table<store::TrialRow>(database),
                                read_table<store::CheckpointRow>(database), read_table<store::Snapshot>(database),
                                read_table<store::EndedTrialRow>(database), read_table<store::MetaRow>(database)};
  std::erase_if(tables, [](const TableRows& table) { return table.rows.empty(); });
  return tables;
}

void put(const store::Database& database, const store::Table& table, const std::vector<Cell>& cells) {
  store::RowChecksum checksum;
  checksum.begin(table.name);
  store::Statement statement(database, store::insertion_into(table, store::WriteMode::replace));
  int parameter = 0;
  for (const Cell& cell : cells) {
    std::visit(
        [&](const auto& value) {
          if constexpr (std::same_as<std::remove_cvref_t<decltype(value)>, std::string>) {
            checksum.add(std::string_view(value));
            statement.bind(++parameter, std::string_view(value));
          } else {
            checksum.add(value);
            statement.bind(++parameter, value);
          }
        },
        cell);
  }
  statement.bind(++parameter, checksum.value()).run();
}

// ---- Directories

// A run as its controller left it, and the places of its files.
struct Original {
  std::string store;
  std::vector<TableRows> tables;
  std::vector<std::string> links = {};  // relative paths that may be replaced by a link
  bool is_training = false;
};

Original original_of(const fs::path& directory, bool is_training) {
  std::vector<TableRows> tables = read_tables(directory);  // first, while rows are still in the log
  Original original{
      .store = content_of(directory / store::kStoreFileName), .tables = std::move(tables), .is_training = is_training};
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    const std::string path = entry.path().lexically_relative(directory);
    if (path != store::kStoreFileName) original.links.push_back(path);
  }
  std::ranges::sort(original.links);
  return original;
}

std::string state_of(const fs::path& root) {
  std::string state;
  std::set<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(root)) paths.insert(entry.path());
  for (const fs::path& path : paths) {
    struct stat found{};
    if (::lstat(path.c_str(), &found) != 0) continue;
    state += fmt::format("{} {:o} {} {}.{}\n", path.native(), found.st_mode, found.st_size, found.st_mtim.tv_sec,
                         found.st_mtim.tv_nsec);
    if (S_ISREG(found.st_mode)) state += content_of(path) + "\n";
  }
  return state;
}

// A child's position and counts, in memory shared with the parent.
struct Progress {
  std::int64_t round;
  char reader[64];
  std::int64_t rows;
  std::int64_t readings;
  std::int64_t refused;
};

class Reading {
 public:
  Reading(fs::path directory, const Original& original, Progress& progress)
      : directory_(std::move(directory)), original_(original), progress_(progress) {}

  void all(Random& random) {
    if (original_.is_training) {
      run("train::Result::from_directory", [&] { look_at(train::Result::from_directory(directory_)); });
      run("train::Trainer::restore", [&] { train::Trainer::restore(directory_); });
    } else {
      run("tune::ResultGrid::from_directory", [&] { look_at(tune::ResultGrid::from_directory(directory_)); });
      run("tune::Tuner::restore", [&] { tune::Tuner::restore(directory_); });
    }
    if (one_in(random, 4)) published(random);
    run("control::delete_other_objects", [&] { cadre::control::delete_other_objects(directory_, {}); });
    original_.is_training ? run("train::recover", [&] { recover_training(); })
                          : run("tune::recover", [&] { recover_experiment(random); });
  }

 private:
  void run(const char* reader, const std::function<void()>& read) {
    std::snprintf(progress_.reader, sizeof progress_.reader, "%s", reader);
    ++progress_.readings;
    try {
      read();
    } catch (const Error&) {
      ++progress_.refused;
    }
  }
  static void require(bool holds, const std::string& what) {
    if (!holds) throw std::logic_error(what);
  }
  static void require_inside(const fs::path& directory, const fs::path& path) {
    const std::string inner = path.lexically_normal().lexically_relative(directory.lexically_normal());
    require(!inner.empty() && !inner.starts_with(".."),
            "the path " + path.string() + " leads out of " + directory.string());
  }

  static void look_at(const tune::ResultGrid& grid) {
    for (const tune::Result& result : grid) {
      require_inside(grid.experiment_path(), result.path);
      if (result.checkpoint) require_inside(grid.experiment_path(), result.checkpoint->path());
      for (const auto& [checkpoint, metrics] : result.best_checkpoints)
        require_inside(grid.experiment_path(), checkpoint.path());
      for (const tune::ExploitRecord& exploit : result.exploits)
        require_inside(grid.experiment_path(), exploit.checkpoint);
      try {
        result.metrics_history();
        for (std::size_t i = 0; i < result.num_results(); ++i) result.config_at(i);
      } catch (const Error&) {
      }
    }
  }
  static void look_at(const train::Result& result) {
    if (result.checkpoint) require_inside(result.path, result.checkpoint->path());
    for (const train::ReportedCheckpoint& one : result.best_checkpoints)
      require_inside(result.path, one.checkpoint.path());
  }

  void recover_experiment(Random& random) {
    store::ExperimentStore store = store::ExperimentStore::open(directory_);
    tune::Description stored = tune::parse_description(base::parse_json(store.info().options, "options"), "options");
    tune::Experiment experiment(stored.trainable, stored.options);
    tune::RunningTime running_time;
    tune::ResultFiles files(directory_, experiment, true);
    tune::Snapshots snapshots(store);
    if (one_in(random, 2)) snapshots.forget();
    tune::recover(store, snapshots, {experiment, files, running_time}, {directory_, {}, engine_},
                  {.allow_divergence = one_in(random, 2)});
  }
  void recover_training() {
    store::ExperimentStore store = store::ExperimentStore::open(directory_);
    const train::Description stored =
        train::parse_description(base::parse_json(store.info().options, "options"), "options");
    train::Run run(stored.options);
    train::recover(store, run, {directory_, {}, engine_}, [](const train::Event&, const train::Actions&, double) {});
  }

  // Reads the same store from a segment, whose manifest may be crafted, and one published checkpoint with a crafted
  // list.
  void published(Random& random) {
    const fs::path bucket = directory_.parent_path() / "bucket" / "run";
    const std::string uri = "file://" + bucket.string();
    fs::remove_all(bucket);
    fs::create_directories(bucket / "store");
    const fs::path segment = bucket / "store" / "00000001.segment";
    std::optional<store::SegmentWriter::Segment> written;
    run("store::SegmentWriter",
        [&] { written = store::SegmentWriter(directory_).write(segment, {.number = 1, .whole_tables = true}); });
    if (!written) return;
    const std::string bytes = content_of(segment);
    const publish::Manifest manifest{.generation = 1,
                                     .writer = "0",
                                     .segments = {{.number = 1,
                                                   .position = written->position,
                                                   .bytes = std::ssize(bytes),
                                                   .xxh3 = fmt::format("{:016x}", base::checksum_of(bytes))}}};
    std::string text = publish::to_text(manifest);
    if (one_in(random, 2)) {
      Dict document = base::parse_json(text, "manifest").dict();
      Value& content = std::ranges::find(document, "published", &Dict::value_type::first)->second;
      content = craft(random, content);
      std::ranges::find(document, "xxh3", &Dict::value_type::first)->second =
          fmt::format("{:016x}", base::checksum_of(cadre::to_json(content)));
      text = base::to_json(document);
      ++progress_.rows;
    }
    write_bytes(bucket / "published.json", text);
    original_.is_training ? run("train::Result of a URI", [&] { train::Result::from_directory(uri); })
                          : run("tune::ResultGrid of a URI", [&] { tune::ResultGrid::from_directory(uri); });

    const fs::path checkpoint = directory_.parent_path() / "working" / "checkpoint_000000";
    fs::remove_all(checkpoint.parent_path());
    fs::create_directories(checkpoint);
    fs::create_directories(bucket / "checkpoint_000000");
    write_bytes(bucket / "checkpoint_000000" / "file", "1234");
    storage::write_published_to(checkpoint.parent_path(), storage::parse_uri(uri));
    const Dict list{
        {"format", 3},
        {"place", "checkpoint_000000"},
        {"files", Dict{{"file", Dict{{"size", 4}, {"xxh3", fmt::format("{:016x}", base::checksum_of("1234"))}}}}}};
    write_bytes(checkpoint / storage::kRemoteFile, cadre::to_json(craft(random, list)));
    ++progress_.rows;
    run("Checkpoint::as_directory", [&] { Checkpoint::from_directory(checkpoint).as_directory(); });
    run("storage::fetch", [&] { storage::fetch(checkpoint); });
  }

  fs::path directory_;
  test_support::EngineWhoseWorkersWorkIn engine_{{}};
  const Original& original_;
  Progress& progress_;
};

class CraftedRows : public testing::Test {
 protected:
  static constexpr std::size_t kRoundsOfAChild = 100;

  void SetUp() override {
    fs::create_directories(root_ / "results");
    fs::create_directories(victim() / "checkpoint_000000");
    write_bytes(victim() / "file", "precious");
    write_bytes(victim() / "checkpoint_000000" / "file", "precious too");
    fs::create_symlink("file", victim() / "link");
    void* const memory = ::mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    progress_ = static_cast<Progress*>(memory);
    *progress_ = {};
    originals_.push_back(experiment());
    originals_.push_back(training_run());
  }
  void TearDown() override { ::munmap(progress_, sizeof(Progress)); }

  fs::path victim() const { return root_ / "victim"; }

  // Returns an experiment that was interrupted in the middle; training_run() returns a training run.
  Original experiment() {
    const fs::path directory = root_ / "original" / "experiment";
    fs::create_directories(directory.parent_path());
    const survival::Setting setting{.steps = 100'000, .interval = 4, .num_to_keep = 2};
    interrupt(ControllerProcess({.experiment = directory, .setting = setting, .said = root_ / "said"}), directory);
    return original_of(directory, false);
  }
  Original training_run() {
    const fs::path directory = root_ / "original" / "training";
    interrupt(ControllerProcess(training_arguments(directory), {}, root_ / "said"), directory);
    return original_of(directory, true);
  }
  static void interrupt(ControllerProcess&& controller, const fs::path& directory) {
    constexpr std::int64_t kEvents = 60;
    const auto until = std::chrono::steady_clock::now() + 60s;
    for (std::int64_t events = 0; events < kEvents;) {
      ASSERT_LT(std::chrono::steady_clock::now(), until);
      std::this_thread::sleep_for(10ms);
      if (!fs::exists(directory / store::kStoreFileName)) continue;
      try {
        const auto database = store::open_database(directory);
        database->keep_log(true);
        events = store::last_sequence(*database);
      } catch (const Error&) {  // the store is being created
      }
    }
    controller.kill(SIGTERM);  // a shell's background processes ignore SIGINT
    ASSERT_TRUE(controller.wait(60s));
  }

  fs::path make(std::size_t round, Random& random, const Original& original, std::size_t rows) const {
    const fs::path results = root_ / "results" / std::to_string(::getpid());
    const fs::path directory = results / fmt::format("run_{}", round);
    fs::remove_all(results);
    fs::create_directories(directory);
    write_bytes(directory / store::kStoreFileName, original.store);
    {
      store::Database database(directory / store::kStoreFileName, store::Database::Access::read_write);
      database.execute("PRAGMA synchronous = OFF; BEGIN");
      for (std::size_t i = 0; i < rows; ++i) {
        // Chooses each table as often as another, but seldom "meta": a crafted entry there is refused before other rows
        // are read.
        const TableRows& table = any_of(random, original.tables);
        if (std::string_view(table.table.name) == "meta" && !one_in(random, 20) && rows > 1) continue;
        std::vector<Cell> cells = any_of(random, table.rows);
        for (std::size_t changes = 1 + below(random, 2); changes > 0; --changes) {
          const std::size_t at = below(random, cells.size());
          cells[at] = one_in(random, 4) ? any_of(random, table.rows)[at] : craft(random, cells[at]);
        }
        try {
          put(database, table.table, cells);
          ++progress_->rows;
        } catch (const StorageError&) {  // a key of another type
        }
      }
      database.execute("COMMIT");
    }
    if (one_in(random, 3)) plant_links(random, directory, original);
    return directory;
  }

  void plant_links(Random& random, const fs::path& directory, const Original& original) const {
    static const std::vector<std::string> targets{"file", "checkpoint_000000", "checkpoint_000000/file", "", "missing"};
    for (std::size_t links = 1 + below(random, 3); links > 0; --links) {
      const std::string& target = any_of(random, targets);
      const fs::path place = directory / any_of(random, original.links);
      std::error_code ignored;
      // A link that was planted before may lead outside.
      if (fs::weakly_canonical(place.parent_path()).string().starts_with(victim().string())) continue;
      fs::create_directories(place.parent_path(), ignored);
      fs::remove_all(place, ignored);
      fs::create_symlink(target.empty() ? victim() : victim() / target, place, ignored);
    }
  }

  static std::size_t rows_of(std::size_t round) {
    constexpr std::size_t sizes[] = {1, 1, 2, 5, 30, 200};
    return sizes[round / 2 % std::size(sizes)];
  }

  // Copies the directory of a round, as it was before it was read, to CADRE_CRAFTED_KEEP.
  void keep(std::size_t round) const {
    const char* const folder = std::getenv("CADRE_CRAFTED_KEEP");
    if (folder == nullptr) return;
    Random random(round);
    const fs::path directory = make(round, random, originals_[round % originals_.size()], rows_of(round));
    fs::create_directories(folder);
    fs::copy(directory, fs::path(folder) / directory.filename(),
             fs::copy_options::recursive | fs::copy_options::copy_symlinks | fs::copy_options::overwrite_existing);
  }

  // Reads a kept directory with several seeds, because readers also draw random choices.
  void read_again(const fs::path& kept) {
    const auto is_training = kept.filename().string().back() % 2 == 1;  // rounds with odd numbers are training runs
    for (std::size_t seed = 0; seed < 8; ++seed) {
      const fs::path directory = root_ / "results" / kept.filename();
      fs::remove_all(directory);
      fs::copy(kept, directory, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
      Random random(seed);
      Reading(directory, originals_[is_training ? 1 : 0], *progress_).all(random);
    }
  }

  // Returns 0 if every reader returned or threw one of Cadre's errors and the victim is unchanged, otherwise 1.
  int read_in_this_process(std::size_t round, std::size_t rows) {
    progress_->round = static_cast<std::int64_t>(round);
    Random random(round);
    const Original& original = originals_[round % originals_.size()];
    try {
      const std::string before = state_of(victim());
      const fs::path directory = make(round, random, original, rows);
      Reading(directory, original, *progress_).all(random);
      if (state_of(victim()) == before) return 0;
      std::cerr << "something outside has changed\n" << before << "-----\n" << state_of(victim());
    } catch (const std::exception& error) {
      std::cerr << "an error that is none of Cadre's: " << error.what() << '\n';
    }
    return 1;
  }

  TemporaryDirectory directory_;
  const fs::path root_ = fs::canonical(directory_.path());
  std::vector<Original> originals_;
  Progress* progress_ = nullptr;
};

TEST_F(CraftedRows, AreReadOrRefusedAndChangeNothingOutside) {
  ASSERT_FALSE(HasFatalFailure());
  const char* const asked = std::getenv("CADRE_CRAFTED_ROWS");
  const char* const first = std::getenv("CADRE_CRAFTED_FIRST");
  const std::int64_t wanted = asked != nullptr ? std::atoll(asked) : 10'000;
  std::size_t round = first != nullptr ? std::strtoull(first, nullptr, 10) : 0;
  if (const char* const kept = std::getenv("CADRE_CRAFTED_READ")) return read_again(kept);
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_EQ(read_in_this_process(0, 0), 0);
  ASSERT_EQ(read_in_this_process(1, 0), 0);
  int failures = 0;
  while (progress_->rows < wanted && failures < 20) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const rlimit memory{std::size_t{4} << 30, std::size_t{4} << 30};
      const rlimit no_core{0, 0};
      ::setrlimit(RLIMIT_AS, &memory);
      ::setrlimit(RLIMIT_CORE, &no_core);
      for (std::size_t i = 0; i < kRoundsOfAChild && progress_->rows < wanted; ++i) {
        ::alarm(60);
        if (read_in_this_process(round + i, rows_of(round + i)) != 0) std::_Exit(1);
      }
      std::_Exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (status == 0) {
      round += kRoundsOfAChild;
      continue;
    }
    ++failures;
    keep(static_cast<std::size_t>(progress_->round));
    ADD_FAILURE() << "round " << progress_->round << ", in " << progress_->reader << ": "
                  << (WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status)) : "see above")
                  << "; again with CADRE_CRAFTED_FIRST=" << progress_->round;
    round = static_cast<std::size_t>(progress_->round) + 1;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::cout << fmt::format("{} crafted rows in {} directories, {} readings of which {} were refused, in {:.1f} s\n",
                           progress_->rows, round, progress_->readings, progress_->refused, took.count());
}

}  // namespace
}  // namespace cadre::storage_tests
