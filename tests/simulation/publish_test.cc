// Controllers that publish one experiment in turns, in virtual time: they are paused, cut off and killed, their
// requests are lost, lose their answers or are carried out much later, and the storage's clock jumps. SIMULATION_SEEDS
// is the number of worlds (default 60), SIMULATION_FIRST_SEED the first seed: a failure names the seed that repeats it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/checksum.h"
#include "publish/lease.h"
#include "publish/manifest.h"
#include "seeds.h"

namespace cadre::publish {
namespace {

using storage::StorageFault;
using storage::StoredFile;
using storage::Version;

// Thrown in a controller that was killed, so that it does nothing more.
class Killed : public std::exception {};

constexpr double kLongestPause = 300;  // seconds: five times the duration of a lease

// A binary semaphore whose waiting thread sleeps: std::binary_semaphore first yields for a while, which takes a time
// slice per turn if other processes keep the machine busy.
class Baton {
 public:
  void release() {
    const std::lock_guard lock(mutex_);
    is_free_ = true;
    changed_.notify_one();
  }
  void acquire() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_free_; });
    is_free_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_free_ = false;
};

// Threads that take turns: one runs at a time, from one request to the next; the thread that is due first continues.
class Turns {
 public:
  explicit Turns(std::uint64_t seed) : random(seed) {}

  // Runs all threads to their ends.
  void run(std::vector<std::function<void()>> bodies) {
    for (auto& body : bodies) {
      auto& one = threads_.emplace_back(std::make_unique<Thread>());
      one->thread = std::jthread([this, &thread = *one, body = std::move(body)] {
        thread.turn.acquire();
        body();
        thread.has_ended = true;
        back_.release();
      });
    }
    while (Thread* const next = choose()) {
      present_ = next;
      now = std::max(now, next->due);
      run_late_requests();
      next->turn.release();
      back_.acquire();
    }
    threads_.clear();
  }
  // Suspends the calling thread, whose turn it is, for so much virtual time; other threads may run meanwhile.
  void wait(double seconds) {
    Thread& own = *present_;
    own.due = now + seconds;
    back_.release();
    own.turn.acquire();
    ++events;
  }
  void later(double seconds, std::function<void()> act) { late_.emplace(now + seconds, std::move(act)); }

  double chance() { return std::uniform_real_distribution<double>()(random); }
  std::int64_t below(std::int64_t limit) { return std::uniform_int_distribution<std::int64_t>(0, limit - 1)(random); }

  std::mt19937_64 random;
  double now = 0;
  std::int64_t events = 0;

 private:
  struct Thread {
    Baton turn;
    double due = 0;
    bool has_ended = false;
    std::jthread thread;
  };

  Thread* choose() {
    Thread* first = nullptr;
    for (const auto& one : threads_) {
      if (!one->has_ended && (first == nullptr || one->due < first->due)) first = one.get();
    }
    return first;
  }
  void run_late_requests() {
    while (!late_.empty() && late_.begin()->first <= now) {
      const auto act = std::move(late_.extract(late_.begin()).mapped());
      act();
    }
  }

  std::vector<std::unique_ptr<Thread>> threads_;
  std::multimap<double, std::function<void()>> late_;
  Thread* present_ = nullptr;
  Baton back_;
};

// The files of the storage, with the invariants that must hold after every change.
class Files {
 public:
  struct File {
    std::string bytes;
    Version version;
    double modified = 0;
  };

  const File* find(const std::string& name) const {
    const auto found = files_.find(name);
    return found == files_.end() ? nullptr : &found->second;
  }
  void write(const std::string& name, std::string bytes, double now) {
    if (name == kManifestFile) check_manifest(bytes);
    if (named_.contains(name)) ADD_FAILURE() << name << " is published, and written over";
    files_[name] = {std::move(bytes), std::to_string(++versions_), now};
  }
  void remove(const std::string& name) {
    if (named_.contains(name)) ADD_FAILURE() << name << " is published, and removed";
    files_.erase(name);
  }
  const std::map<std::string, File>& all() const { return files_; }
  // Returns the rows of the manifest's segments, one after the other.
  const std::string& history() const { return history_; }

 private:
  // Checks that the manifest names complete files and continues the history of the previous manifest.
  void check_manifest(const std::string& text) {
    const Manifest manifest = parse_manifest(text, "the manifest");
    std::string history;
    named_.clear();
    for (const SegmentEntry& entry : manifest.segments) {
      const std::string name = segment_name(entry);
      const File* const file = find(name);
      ASSERT_TRUE(file) << name << " is named, and is not there";
      EXPECT_EQ(entry.xxh3, std::to_string(base::checksum_of(file->bytes))) << name;
      named_.insert(name);
      history += file->bytes;
    }
    EXPECT_TRUE(history.starts_with(history_)) << "generation " << manifest.generation << " forgets what was published";
    EXPECT_GE(manifest.generation, generation_);
    generation_ = manifest.generation;
    history_ = std::move(history);
  }

  std::map<std::string, File> files_;
  std::set<std::string> named_;
  std::string history_;
  std::int64_t generation_ = 0;
  std::int64_t versions_ = 0;
};

struct Mishaps {
  double request_is_lost = 0.01;
  double answer_is_lost = 0.01;
  double is_late = 0.01;  // carried out long after the client stopped waiting
  double pause = 0.005;   // of the whole controller
  double cut = 0.003;     // from the storage
  double kill = 0.002;
  double clock_jump = 0.001;
};

struct World {
  explicit World(std::uint64_t seed) : turns(seed) {}

  Turns turns;
  Files files;
  Mishaps mishaps = {};
  double clock_error = 0;  // of the storage
  std::int64_t take_overs = 0;
  std::int64_t lost = 0;
  std::set<std::string> alive = {};  // tokens

  double clock() const { return turns.now + clock_error; }
};

// The storage as one controller uses it.
class Connection final : public storage::Storage {
 public:
  explicit Connection(World& world) : world_(world) {}

  void write(const std::string& name, std::string_view bytes) override {
    change([&world = world_, name, bytes = std::string(bytes)] { world.files.write(name, bytes, world.clock()); });
  }
  std::optional<std::string> read(const std::string& name) override {
    request();
    const auto* const file = world_.files.find(name);
    return file == nullptr ? std::nullopt : std::optional(file->bytes);
  }
  std::optional<StoredFile> find(const std::string& name) override {
    request();
    const auto* const file = world_.files.find(name);
    if (file == nullptr) return std::nullopt;
    return StoredFile{name, static_cast<std::int64_t>(file->bytes.size()), file->modified};
  }
  std::vector<StoredFile> list(const std::string& folder) override {
    request();
    std::vector<StoredFile> files;
    for (const auto& [name, file] : world_.files.all()) {
      if (name.starts_with(folder)) files.push_back({name, 0, file.modified});
    }
    return files;
  }
  void remove(const std::string& name) override {
    change([&world = world_, name] { world.files.remove(name); });
  }
  bool has_conditional_writes() override { return true; }
  std::optional<storage::VersionedBytes> read_versioned(const std::string& name) override {
    request();
    const auto* const file = world_.files.find(name);
    if (file == nullptr) return std::nullopt;
    return storage::VersionedBytes{file->bytes, file->version};
  }
  std::optional<Version> write_if(const std::string& name, std::string_view bytes,
                                  const std::optional<Version>& expected) override {
    const auto version = std::make_shared<std::optional<Version>>();
    change([&world = world_, name, bytes = std::string(bytes), expected, version] {
      const auto* const file = world.files.find(name);
      if ((file == nullptr ? std::nullopt : std::optional(file->version)) != expected) return;
      world.files.write(name, bytes, world.clock());
      *version = world.files.find(name)->version;
    });
    return *version;
  }

  // Controllers never call these for these files.
  storage::Contents upload(const storage::FileToUpload&, const std::string&) override { return {}; }
  storage::Contents download(const std::string&, const std::filesystem::path&) override { return {}; }
  void remove_folder(const std::string&) override {}

 private:
  [[noreturn]] static void fail() { throw StorageFault(StorageFault::Kind::passing, "nobody answers"); }

  // Precedes each request: may kill the controller, cut it off or pause it, or lose the request.
  void request() {
    Turns& turns = world_.turns;
    const Mishaps& mishaps = world_.mishaps;
    if (is_killed_) throw Killed();
    if (turns.chance() < mishaps.kill) {
      is_killed_ = true;
      throw Killed();
    }
    if (turns.chance() < mishaps.clock_jump) world_.clock_error += 1000 * (turns.chance() - 0.5);
    if (turns.chance() < mishaps.cut) cut_until_ = turns.now + kLongestPause * turns.chance();
    turns.wait(turns.chance() < mishaps.pause ? kLongestPause * turns.chance() : 0.05 * turns.chance());
    if (turns.now < cut_until_ || turns.chance() < mishaps.request_is_lost) {
      turns.wait(1);
      fail();
    }
  }
  void change(std::function<void()> act) {
    request();
    if (world_.turns.chance() < world_.mishaps.is_late) {
      world_.turns.later(kLongestPause * world_.turns.chance(), std::move(act));
      fail();
    }
    act();
    world_.turns.wait(0.01 * world_.turns.chance());
    if (world_.turns.chance() < world_.mishaps.answer_is_lost) fail();
  }

  World& world_;
  bool is_killed_ = false;
  double cut_until_ = 0;
};

// A controller, from its start to its end: it takes over the lease, and publishes its own rows.
class Controller {
 public:
  Controller(World& world, std::string token) : world_(world), token_(std::move(token)) {}

  void run() {
    const auto connection = std::make_shared<Connection>(world_);
    world_.alive.insert(token_);
    try {
      Lease lease({.storage = connection, .uri = storage::parse_uri("file:///sim"), .system = system()});
      ++world_.take_overs;
      manifest_ = lease.manifest();
      number_ = manifest_.segments.empty() ? 1 : manifest_.segments.back().number + 1;
      while (!publish_again_and_again(lease, *connection)) world_.turns.wait(1);
    } catch (const LeaseLost&) {
      ++world_.lost;
    } catch (const Killed&) {
      world_.alive.erase(token_);
    } catch (const Error&) {  // another controller is active, or the storage cannot be used
    }
    if (world_.alive.erase(token_) > 0) world_.turns.wait(0.1);
  }

 private:
  LeaseSystem system() {
    return {.seconds = [this] { return world_.turns.now; },
            .self = [this] { return Holder{.token = token_, .host = "simulated", .machine = token_}; },
            .is_dead =
                [this](const Holder& holder) {
                  // Deaths are known of some holders only, as if they ran on the same machine.
                  return !world_.alive.contains(holder.token) && holder.token.back() % 2 == 0;
                }};
  }

  // Returns true when everything is published.
  bool publish_again_and_again(Lease& lease, storage::Storage& storage) {
    try {
      for (; rows_left_ > 0 || !rows_.empty(); world_.turns.wait(2 * world_.turns.chance())) {
        if (rows_left_ > 0) {
          rows_ += token_ + "." + std::to_string(rows_left_--) + " ";
        }
        lease.require();
        publish(lease, storage);
        for (; !replaced_.empty(); replaced_.pop_front()) storage.remove(replaced_.front());
      }
      lease.verify();
      EXPECT_TRUE(world_.files.history().find(said_) != std::string::npos) << "what is called published is not";
      lease.release();
      return true;
    } catch (const StorageFault&) {
      return false;
    }
  }

  void publish(Lease& lease, storage::Storage& storage) {
    const Merge merge = plan_merge(manifest_.segments);
    SegmentEntry entry{.number = number_++, .generation = lease.generation(), .level = merge.level};
    std::string bytes;
    for (std::size_t i = merge.kept; i < manifest_.segments.size(); ++i) {
      const auto part = storage.read(segment_name(manifest_.segments[i]));
      if (!part) {  // another controller has taken over
        lease.verify();
        ADD_FAILURE() << segment_name(manifest_.segments[i]) << " is missing, and nobody has taken over";
        return;
      }
      bytes += *part;
    }
    bytes += rows_;
    entry.xxh3 = std::to_string(base::checksum_of(bytes));
    storage.write(segment_name(entry), bytes);
    Manifest next = manifest_;
    std::vector<std::string> replaced;
    for (std::size_t i = merge.kept; i < next.segments.size(); ++i) replaced.push_back(segment_name(next.segments[i]));
    next.segments.resize(merge.kept);
    next.segments.push_back(entry);
    lease.publish(next);
    manifest_ = std::move(next);
    said_ += rows_;
    rows_.clear();
    replaced_.insert(replaced_.end(), replaced.begin(), replaced.end());
  }

  World& world_;
  std::string token_;
  Manifest manifest_ = {};
  std::int64_t number_ = 1;
  std::int64_t rows_left_ = world_.turns.below(60);
  std::string rows_ = {};  // not published yet
  std::string said_ = {};  // all published rows
  std::deque<std::string> replaced_ = {};
};

TEST(PublishingSimulation, NoControllerChangesWhatItsSuccessorHasPublished) {
  const test_support::Seeds seeds(60);
  std::int64_t take_overs = 0;
  std::int64_t lost = 0;
  std::int64_t events = 0;
  for (std::uint64_t seed = seeds.first(); seed < seeds.first() + seeds.count() && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world(seed);
    const std::int64_t machines = 2 + static_cast<std::int64_t>(seed % 2);
    std::vector<std::function<void()>> bodies;
    for (std::int64_t machine = 0; machine < machines; ++machine) {
      bodies.emplace_back([&world, machine] {
        for (int life = 0; life < 40; ++life) {
          Controller(world, std::to_string(machine) + "_" + std::to_string(life)).run();
          world.turns.wait(30 * world.turns.chance());
        }
      });
    }
    world.turns.run(std::move(bodies));
    take_overs += world.take_overs;
    lost += world.lost;
    events += world.turns.events;
  }
  if (seeds.are_many()) {
    EXPECT_GE(take_overs, 1000);
    EXPECT_GE(lost, 100) << "of which some came back";
  }
  std::cout << take_overs << " take-overs, " << lost << " controllers came back too late, " << events << " events\n";
}

}  // namespace
}  // namespace cadre::publish
