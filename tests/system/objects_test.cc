// The object store with real workers: the memory it uses, the visibility of writes, and the lifetime of objects.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>
#include <thread>

#include "base/directory.h"
#include "cadre/tune.h"
#include "scenario.h"
#include "support/message_of.h"
#include "support/temporary_directory.h"

namespace cadre::system_tests {
namespace {

using test_support::content_of;
using test_support::message_of;
using test_support::TemporaryDirectory;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

// ---- Waits of trials and tests

// Opens a named pipe, so that workers find it. An open for reading and writing never blocks.
base::FileDescriptor open_pipe(const fs::path& path, int flags) {
  ::mkfifo(path.c_str(), 0666);
  return base::FileDescriptor(::open(path.c_str(), flags | O_CLOEXEC));
}

// Sends the worker's process id and waits until the test lets it go on.
void wait_at(const fs::path& gate) {
  const pid_t process = ::getpid();
  const auto arrived = open_pipe(gate / "arrived", O_RDWR);
  const auto go_on = open_pipe(gate / "go_on", O_RDWR);
  char byte = 0;
  if (::write(arrived.get(), &process, sizeof process) != sizeof process || ::read(go_on.get(), &byte, 1) != 1)
    throw std::runtime_error("the test is gone");
}

class Gate {
 public:
  explicit Gate(const fs::path& path)
      : arrived_(open_pipe(path / "arrived", O_RDWR)), go_on_(open_pipe(path / "go_on", O_RDWR)) {}

  // Returns the next worker that waits; fails the test and returns 0 if none comes for a minute.
  pid_t arrival() const {
    pid_t process = 0;
    pollfd ready{arrived_.get(), POLLIN, 0};
    const bool came = ::poll(&ready, 1, 60'000) == 1;
    EXPECT_TRUE(came && ::read(arrived_.get(), &process, sizeof process) == sizeof process) << "no worker came";
    return process;
  }
  void open(int workers) const {
    const std::string bytes(static_cast<std::size_t>(workers), '.');
    EXPECT_EQ(::write(go_on_.get(), bytes.data(), bytes.size()), workers);
  }

 private:
  base::FileDescriptor arrived_;
  base::FileDescriptor go_on_;
};

// ---- Memory of an object's mapping

struct Usage {
  std::int64_t size = 0, resident = 0, proportional = 0, written = 0;  // KiB
};

Usage usage_of_objects(pid_t process) {
  std::ifstream smaps("/proc/" + std::to_string(process) + "/smaps");
  Usage usage;
  bool is_object = false;
  for (std::string line; std::getline(smaps, line);) {
    std::istringstream words(line);
    std::string key;
    std::int64_t amount = 0;
    words >> key >> amount;
    if (key.back() != ':') is_object = line.find("/objects/") != line.npos;
    if (!is_object) continue;
    if (key == "Size:") usage.size += amount;
    if (key == "Rss:") usage.resident += amount;
    if (key == "Pss:") usage.proportional += amount;
    if (key == "Private_Dirty:") usage.written += amount;
  }
  return usage;
}

// ---- Trials

constexpr std::size_t kMebibyte = std::size_t{1} << 20;

void reads_a_large_object(const Config& config, const Config& parameters) {
  const Object object = get_object(parameters, "data");
  const Usage untouched = usage_of_objects(::getpid());
  std::int64_t sum = 0;
  for (const std::int64_t number : object.as<std::int64_t>()) sum += number;
  wait_at(config.get<std::string>("gate"));
  tune::report({{"sum", sum}, {"size", untouched.size}, {"resident_before", untouched.resident}});
}

void writes_its_name(const Config& config) {
  const Object object = get_object(config, "data");
  const std::string found(object.text());
  const std::string name = tune::get_context().get_trial_id();
  std::ranges::copy(std::as_bytes(std::span(name)), object.bytes().begin());
  wait_at(config.get<std::string>("gate"));
  tune::report({{"found", found}, {"wrote", object.text()}, {"again", get_object(config, "data").text()}});
}

void reads_text(const Config& config) { tune::report({{"text", get_object(config, "data").text()}}); }

// References held as long as the experiment runs; a function in the search space chooses one of them.
std::array<std::optional<ObjectRef>, 2> tables;
Value chosen_table(const Config& config) { return to_reference(*tables.at(config.get<std::size_t>("index"))); }

void reads_text_after_the_gate(const Config& config) {
  tune::report({{"score", 0}});
  wait_at(config.get<std::string>("gate"));
  tune::report({{"text", get_object(config, "data").text()}});
}

void fails_until_the_gate_is_there(const Config& config) {
  if (!fs::exists(config.get<std::string>("gate"))) throw std::runtime_error("not yet");
  tune::report({{"text", get_object(config, "data").text()}});
}

void reports_parameters(const Config& config, const Config& parameters) {
  tune::report({{"score", config.get<double>("lr") * parameters.get<double>("scale")},
                {"text", get_object(parameters, "data").text()}});
}

tune::TunerOptions options_in(const fs::path& storage, tune::Space space, std::int64_t trials = 1) {
  return {.param_space = std::move(space),
          .tune_config = {.num_samples = trials},
          .run_config = {.name = "experiment", .storage_path = storage, .verbose = 0}};
}

std::vector<std::string> object_files(const fs::path& storage) {
  const fs::path objects = storage / "experiment/objects";
  return fs::exists(objects) ? base::list_directory(objects) : std::vector<std::string>();
}

// ---- Memory

TEST(ObjectStore, SixteenWorkersUseTheMemoryOfALargeObjectOnceAndBeginWithoutReadingIt) {
  const TemporaryDirectory storage;
  // CADRE_TEST_OBJECT_MEBIBYTES=500, set by hand, gives the figure of docs/performance.md.
  const char* const mebibytes = std::getenv("CADRE_TEST_OBJECT_MEBIBYTES");
  const std::size_t bytes = (mebibytes ? std::strtoul(mebibytes, nullptr, 10) : 64) * kMebibyte;
  constexpr int kWorkers = 16;
  std::vector<std::int64_t> numbers(bytes / sizeof(std::int64_t));
  std::iota(numbers.begin(), numbers.end(), 0);
  const std::int64_t sum = std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});

  tune::Tuner tuner(tune::with_parameters(tune::with_resources(fn<reads_a_large_object>, {.cpus = 4.0 / kWorkers}),
                                          {{"data", put(numbers)}}),
                    options_in(storage.path(), {{"gate", storage.path().string()}}, kWorkers));
  const Gate gate(storage.path());
  Usage total;
  std::thread observer([&] {
    std::vector<pid_t> workers;
    while (workers.size() < kWorkers) workers.push_back(gate.arrival());
    for (const pid_t worker : workers) {
      const Usage usage = usage_of_objects(worker);
      total.proportional += usage.proportional;
      total.written += usage.written;
    }
    gate.open(kWorkers);
  });
  const tune::ResultGrid results = tuner.fit();
  observer.join();
  EXPECT_EQ(results.num_terminated(), kWorkers);
  const auto size = static_cast<std::int64_t>(bytes >> 10);
  for (const tune::Result& result : results) {
    EXPECT_EQ(result.metrics.get<std::int64_t>("sum"), sum);
    EXPECT_EQ(result.metrics.get<std::int64_t>("size"), size);
    EXPECT_EQ(result.metrics.get<std::int64_t>("resident_before"), 0) << "something was read at the start";
  }
  EXPECT_EQ(total.written, 0);
  EXPECT_GE(total.proportional, size * 9 / 10);
  EXPECT_LE(total.proportional, size * 11 / 10);
  std::printf("%d workers, an object of %ld KiB: %ld KiB of memory together\n", kWorkers, static_cast<long>(size),
              static_cast<long>(total.proportional));
}

TEST(ObjectStore, WhatAWorkerWritesNobodyElseSees) {
  const TemporaryDirectory storage;
  const ObjectRef data = put("-----");
  tune::Tuner tuner(fn<writes_its_name>,
                    options_in(storage.path(), {{"data", data}, {"gate", storage.path().string()}}, 4));
  const Gate gate(storage.path());
  std::thread opens([&] {
    for (int i = 0; i < 4; ++i) gate.arrival();
    gate.open(4);
  });
  const tune::ResultGrid results = tuner.fit();
  opens.join();
  for (const tune::Result& result : results) {
    EXPECT_EQ(result.metrics.get<std::string>("found"), "-----");
    EXPECT_EQ(result.metrics.get<std::string>("wrote"), result.trial_id);
    EXPECT_EQ(result.metrics.get<std::string>("again"), "-----");
  }
  EXPECT_EQ(get(data).text(), "-----");
}

// ---- Lifetime

TEST(ObjectStore, EqualObjectsAreOneFile) {
  const TemporaryDirectory storage;
  const ObjectRef one = put("one");
  const ObjectRef two = put("two");
  tune::Tuner tuner(fn<reads_text_after_the_gate>,
                    options_in(storage.path(), {{"data", tune::grid_search({one, two, put("one")})},
                                                {"gate", storage.path().string()}}));
  const Gate gate(storage.path());
  std::size_t files = 0;
  std::thread opens([&] {
    for (int i = 0; i < 3; ++i) gate.arrival();
    files = object_files(storage.path()).size();
    gate.open(3);
  });
  const tune::ResultGrid results = tuner.fit();
  opens.join();
  EXPECT_EQ(files, 2u);
  for (const auto& [index, text] : {std::pair(0, "one"), {1, "two"}, {2, "one"}})
    EXPECT_EQ(results[static_cast<std::size_t>(index)].metrics.get<std::string>("text"), text);
}

TEST(ObjectStore, AFunctionOfTheSearchSpaceChoosesTheObjectOfEachTrial) {
  const TemporaryDirectory storage;
  tables = {put("first"), put("second")};
  const tune::ResultGrid results =
      tune::Tuner(fn<reads_text>,
                  options_in(storage.path(), {{"index", tune::grid_search({0, 1})}, {"data", fn<chosen_table>}}))
          .fit();
  EXPECT_EQ(results[0].metrics.get<std::string>("text", ""), "first");
  EXPECT_EQ(results[1].metrics.get<std::string>("text", ""), "second");
  tables = {};
  EXPECT_FALSE(fs::exists(storage / "experiment/objects"));
}

TEST(ObjectStore, AnObjectThatNobodyHoldsIsDeletedWhenTheExperimentHasEnded) {
  const TemporaryDirectory storage;
  tune::Tuner tuner(fn<reads_text>, options_in(storage.path(), {{"data", put("contents")}}));
  const tune::ResultGrid results = tuner.fit();
  EXPECT_EQ(results[0].metrics.get<std::string>("text"), "contents");
  EXPECT_FALSE(fs::exists(storage / "experiment/objects"));
  EXPECT_EQ(tune::Tuner::restore(storage / "experiment").fit().size(), 1u) << "it needs no object any more";
}

TEST(ObjectStore, AnObjectStaysAsLongAsItIsHeldAndIsUsedByFurtherExperiments) {
  const TemporaryDirectory storage;
  std::optional<ObjectRef> data = put("contents");
  tune::Tuner(fn<reads_text>, options_in(storage.path(), {{"data", *data}})).fit();
  EXPECT_THAT(object_files(storage.path()), ::testing::ElementsAre(data->id()));
  EXPECT_EQ(get(*data).text(), "contents");
  const tune::ResultGrid next = tune::Tuner(fn<reads_text>, options_in(storage / "next", {{"data", *data}})).fit();
  EXPECT_EQ(next[0].metrics.get<std::string>("text"), "contents");
  data.reset();
  EXPECT_FALSE(fs::exists(storage / "experiment/objects"));
  EXPECT_FALSE(fs::exists(storage / "next/experiment/objects"));
}

TEST(ObjectStore, TrialsThatHaveFailedKeepTheirObjectsUntilTheyAreTakenUp) {
  const TemporaryDirectory storage;
  const fs::path gate = storage / "gate";
  tune::Tuner(fn<fails_until_the_gate_is_there>,
              options_in(storage.path(), {{"data", put("contents")}, {"gate", gate.string()}}))
      .fit();
  EXPECT_EQ(object_files(storage.path()).size(), 1u);
  fs::create_directory(gate);
  const tune::ResultGrid results = tune::Tuner::restore(storage / "experiment", {.resume_errored = true}).fit();
  EXPECT_EQ(results[0].metrics.get<std::string>("text"), "contents");
  EXPECT_TRUE(object_files(storage.path()).empty());
}

// ---- Interruptions

// Returns an experiment that was killed when two trials had begun and none had used the object yet.
fs::path killed_experiment(const fs::path& storage) {
  ::setenv("CADRE_TEST_STORAGE", storage.c_str(), 1);
  const Gate gate(storage);
  ScenarioProcess process("objects are in use");
  const Watched first(gate.arrival());
  const Watched second(gate.arrival());
  ::kill(process.process(), SIGKILL);
  process.wait();
  EXPECT_TRUE(first.ends_within(60'000) && second.ends_within(60'000));
  return storage / "experiment";
}
const bool in_use = register_scenario("objects are in use", [] {
  const fs::path storage = std::getenv("CADRE_TEST_STORAGE");
  tune::Tuner(fn<reads_text_after_the_gate>,
              options_in(storage, {{"data", put("contents")}, {"gate", storage.string()}}, 2))
      .fit();
  return 0;
});

TEST(ObjectStore, AfterAKillARestoreHasTheObjects) {
  const TemporaryDirectory storage;
  const fs::path experiment = killed_experiment(storage.path());
  EXPECT_EQ(object_files(storage.path()).size(), 1u);
  const Gate gate(storage.path());
  gate.open(2);
  const tune::ResultGrid results = tune::Tuner::restore(experiment).fit();
  ASSERT_EQ(results.num_terminated(), 2u);
  for (const tune::Result& result : results) EXPECT_EQ(result.metrics.get<std::string>("text"), "contents");
  EXPECT_TRUE(object_files(storage.path()).empty());
}

TEST(ObjectStore, ARestoreNamesAnObjectThatIsGoneBeforeAnythingRunsAndTakesItWhenItIsPutAgain) {
  const TemporaryDirectory storage;
  const fs::path experiment = killed_experiment(storage.path());
  const std::string id = object_files(storage.path()).at(0);
  fs::remove(experiment / "objects" / id);
  EXPECT_THAT(message_of<StorageError>([&] { tune::Tuner::restore(experiment).fit(); }),
              AllOf(HasSubstr(id), HasSubstr("param_space/data/value"), HasSubstr("the config of trial 00001/data"),
                    HasSubstr((experiment / "objects" / id).string())));

  const ObjectRef again = put("contents");
  const Gate gate(storage.path());
  gate.open(2);
  const tune::ResultGrid results = tune::Tuner::restore(experiment).fit();
  ASSERT_EQ(results.num_terminated(), 2u);
  for (const tune::Result& result : results) EXPECT_EQ(result.metrics.get<std::string>("text"), "contents");
}

TEST(ObjectStore, ATrialWhoseObjectWasDeletedFailsAndItsErrorNamesTheFile) {
  const TemporaryDirectory storage;
  tune::Tuner tuner(fn<reads_text_after_the_gate>,
                    options_in(storage.path(), {{"data", put("contents")}, {"gate", storage.path().string()}}));
  const Gate gate(storage.path());
  std::thread deletes([&] {
    gate.arrival();
    fs::remove_all(storage / "experiment/objects");
    gate.open(1);
  });
  const tune::ResultGrid results = tuner.fit();
  deletes.join();
  ASSERT_EQ(results.num_errors(), 1u);
  EXPECT_THAT(results[0].error.value_or(""), AllOf(HasSubstr("\"data\""), HasSubstr("objects/"), HasSubstr("is gone")));
}

TEST(ObjectStore, ATunerRefusesAReferenceThatNobodyHolds) {
  const TemporaryDirectory storage;
  const tune::TunerOptions options = options_in(storage.path(), {{"data", put("contents")}});
  EXPECT_THAT(message_of<InvalidArgument>([&] { tune::Tuner(fn<reads_text>, options); }),
              AllOf(HasSubstr("param_space/data"), HasSubstr("-8"), HasSubstr("gone")));
  EXPECT_TRUE(base::list_directory(storage.path()).empty());
}

void reports_the_size(const Config& config) { tune::report({{"size", get_object(config, "data").bytes().size()}}); }

const bool is_on_a_full_disk = register_scenario("an object on a full disk", [] {
  const fs::path storage = fs::temp_directory_path();
  const auto resize = [&](const char* size) { return ::mount("", storage.c_str(), "", MS_REMOUNT, size) == 0; };
  if (!resize("size=1m")) return 2;
  const ObjectRef data = put(std::string(4 * kMebibyte, 'x'));
  const auto fit = [&] { return tune::Tuner(fn<reports_the_size>, options_in(storage, {{"data", data}})).fit(); };
  say(message_of<OutOfSpace>(fit));
  say(std::to_string(object_files(storage).size()));
  if (!resize("size=64m")) return 3;
  say(to_json(fit()[0].metrics.at("size")));
  return 0;
});

TEST(ObjectStore, AFullDiskEndsFitBeforeAnythingRunsAndItCanBeTriedAgain) {
  ScenarioProcess process("an object on a full disk", {own_small_disk});
  const std::string line = process.line();
  if (line.starts_with("cannot: ")) GTEST_SKIP() << line;
  EXPECT_THAT(line, AllOf(HasSubstr("/objects/"), HasSubstr("No space left")));
  EXPECT_EQ(process.line(), "0");
  EXPECT_EQ(process.line(), std::to_string(4 * kMebibyte));
  EXPECT_EQ(process.wait(), 0);
}

TEST(ObjectStore, AnObjectBeyondATrialsMemoryLimitFailsItAndTheErrorNamesBoth) {
  const TemporaryDirectory storage;
  const ObjectRef data = put(std::string(64 * kMebibyte, 'x'));
  auto options = options_in(storage.path(), {{"data", data}});
  options.run_config.limits.memory_bytes = 16 * kMebibyte;
  const tune::ResultGrid results = tune::Tuner(fn<reports_the_size>, options).fit();
  ASSERT_EQ(results.num_errors(), 1u);
  EXPECT_THAT(results[0].error.value_or(""), AllOf(HasSubstr("cannot map"), HasSubstr(data.id()),
                                                   HasSubstr("the memory limit of this trial is 16 MiB")));
}

// ---- with_parameters

TEST(ObjectStore, ParametersReachTheFunctionAndNoResultAndAreThereAfterARestore) {
  const TemporaryDirectory storage;
  auto options = options_in(storage.path(), {{"lr", 0.5}});
  const auto trainable =
      tune::with_parameters(fn<reports_parameters>, {{"scale", 4.0}, {"data", put("a large data set")}});
  EXPECT_THROW(tune::Tuner(trainable, options), InvalidArgument) << "nobody holds the object";
  const ObjectRef data = put("a large data set");
  const tune::ResultGrid results = tune::Tuner(trainable, options).fit();
  EXPECT_EQ(results[0].metrics.get<double>("score"), 2.0);
  EXPECT_EQ(results[0].metrics.get<std::string>("text"), "a large data set");
  EXPECT_EQ(results[0].config, (Config{{"lr", 0.5}}));
  for (const char* file : {"params.json", "result.json", "progress.csv"})
    EXPECT_THAT(content_of(results[0].path / file), Not(HasSubstr("scale"))) << file;
  EXPECT_EQ(tune::Tuner::restore(storage / "experiment", trainable, options).fit().size(), 1u);
  EXPECT_THAT(message_of<InvalidArgument>([&] {
                const auto other = tune::with_parameters(trainable, {{"scale", 5.0}});
                tune::Tuner::restore(storage / "experiment", other, options);
              }),
              HasSubstr("trainable/parameters"));
}

}  // namespace
}  // namespace cadre::system_tests
