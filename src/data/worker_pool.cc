#include "data/worker_pool.h"

#include <arrow/record_batch.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ranges>
#include <utility>

#include "base/directory.h"
#include "base/file.h"
#include "base/overload.h"
#include "base/system_error.h"
#include "cadre/object.h"
#include "channel/worker_end.h"
#include "data/functions.h"
#include "data/shared_blocks.h"
#include "data/stream.h"
#include "run/entries.h"
#include "run/gpus.h"
#include "run/object_uses.h"
#include "run/root_engine.h"
#include "run/worker.h"
#include "store/held_objects.h"
#include "store/object_files.h"

namespace cadre::data {
namespace fs = std::filesystem;
namespace {

constexpr const char* kEntry = "cadre dataset worker";
constexpr std::size_t kStderrBytes = 2048;  // of a dead worker's, in the error

fs::path make_folder() {
  std::string name = fs::temp_directory_path() / "cadre-data-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) base::throw_storage_error("make a folder for workers", name);
  return name;
}

// ---- In the worker: asks for batches, calls the function, and says what it has returned with the next question.
Value run_data_worker(channel::WorkerEnd& controller, const Value& payload) {
  const Config task(payload);
  if (const Value& devices = task.at("visible_devices"); devices.is_string())
    ::setenv("CUDA_VISIBLE_DEVICES", devices.get<std::string>().c_str(), 1);
  store::set_experiment_of_objects(task.get<std::string>("objects"));
  const detail::BatchCall function =
      find_batch_call(task.get<std::string>("kind"), task.get<std::string>("name"))(Config(task.at("config")));
  channel::Request request;
  std::optional<SharedBlocks> returned;  // until the controller has opened it
  for (;;) {
    const channel::Reply reply = controller.call(request);
    if (reply.content.is_null()) return {};
    returned.reset();
    std::vector<Block> results;
    for (const Block& batch : open_shared(reply.content).blocks) {
      Block result = function(Batch(batch)).arrow();
      if (result->num_rows() > 0) results.push_back(std::move(result));
    }
    request.content = returned.emplace(results).ticket();
  }
}

const bool registered = [] {
  run::register_entry(kEntry, run_data_worker);
  return true;
}();

std::string end_of(const fs::path& file) {
  try {
    std::string text = base::read_file(file);
    if (text.size() > kStderrBytes) text.erase(0, text.size() - kStderrBytes);
    while (text.ends_with('\n')) text.pop_back();
    return text;
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

// ---- The pool

WorkerPool::WorkerPool() : folder_(make_folder()) {
  static_cast<void>(registered);
  thread_ = std::thread([this] { work(); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return engine_ != nullptr || engine_error_ != nullptr; });
  if (engine_error_ == nullptr) {
    resources_ = engine_->resources();
    ledger_.emplace(resources_);
    return;
  }
  lock.unlock();
  thread_.join();
  base::remove_tree(folder_);
  std::rethrow_exception(engine_error_);
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    if (engine_ != nullptr) engine_->wake();
  }
  thread_.join();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void WorkerPool::work() {
  const auto fail = [this](std::unique_ptr<engine::Engine> dropped) {
    const std::lock_guard lock(mutex_);
    engine_error_ = std::current_exception();
    dropped.reset();
    changed_.notify_all();
  };
  try {
    auto made = run::make_root_engine();
    const std::lock_guard lock(mutex_);
    engine_ = std::move(made);
    changed_.notify_all();
  } catch (const Error&) {
    return fail(nullptr);
  }
  try {
    for (;;) {
      std::vector<Command> commands;
      {
        const std::lock_guard lock(mutex_);
        if (ends_) break;
        commands = std::exchange(commands_, {});
      }
      for (const Command& command : commands) command(*engine_);
      for (engine::Event& event : engine_->wait(std::nullopt)) take(event);
    }
  } catch (const Error&) {
    fail(nullptr);
  }
  std::unique_ptr<engine::Engine> dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped = std::move(engine_);
  }
}

void WorkerPool::post(Command command) {
  const std::lock_guard lock(mutex_);
  commands_.push_back(std::move(command));
  if (engine_ != nullptr) engine_->wake();
}

void WorkerPool::take(engine::Event& event) {
  const auto set = [this](engine::WorkerId worker, Outcome outcome) {
    const std::lock_guard lock(mutex_);
    const auto found = workers_.find(worker);
    if (found == workers_.end()) return;
    if (!found->second.outcome) found->second.outcome = std::move(outcome);  // the first one says it
    changed_.notify_all();
  };
  if (auto* received = std::get_if<engine::Received>(&event)) {
    if (auto* request = std::get_if<channel::Request>(&received->message))
      set(received->worker, Answer{std::move(request->content)});
    if (auto* failed = std::get_if<channel::Failed>(&received->message))
      set(received->worker, Failure{std::move(failed->message)});
    return;
  }
  const auto& exited = std::get<engine::Exited>(event);
  std::string description = "its worker " + engine::to_string(exited.exit);
  const std::string said = end_of(folder_of(exited.worker) / "stderr");
  if (!said.empty()) description += "; the end of its stderr:\n" + said;
  set(exited.worker, Death{std::move(description)});
}

fs::path WorkerPool::folder_of(engine::WorkerId worker) const { return folder_ / fmt::format("worker_{}", worker); }

engine::WorkerId WorkerPool::start(const Value& payload, const Resources& resources) {
  engine::WorkerId worker = 0;
  {
    const std::lock_guard lock(mutex_);
    worker = ++last_worker_;
    workers_[worker];
  }
  engine::WorkerSpec spec{.assignment = {kEntry, payload}, .directory = folder_of(worker), .cpus = resources.cpus};
  base::make_directory(spec.directory);
  post([worker, spec = std::move(spec)](engine::Engine& engine) { engine.start(worker, spec); });
  return worker;
}

std::string WorkerPool::take_gpus(const Resources& resources) {
  const std::lock_guard lock(mutex_);
  return run::visible_devices(ledger_->acquire(resources).value_or(run::Gpus()));
}

void WorkerPool::give(engine::WorkerId worker, const Value& task) {
  post([worker, task](engine::Engine& engine) { engine.reply(worker, channel::Reply{.content = task}); });
}

WorkerPool::Outcome WorkerPool::wait_for(engine::WorkerId worker) {
  std::unique_lock lock(mutex_);
  Worker& state = workers_.at(worker);
  changed_.wait(lock, [&] { return state.outcome || state.cancelled || engine_error_ != nullptr; });
  if (state.cancelled) return Cancellation{};
  if (!state.outcome) std::rethrow_exception(engine_error_);
  return *std::exchange(state.outcome, std::nullopt);
}

void WorkerPool::cancel(engine::WorkerId worker) {
  const std::lock_guard lock(mutex_);
  const auto found = workers_.find(worker);
  if (found == workers_.end()) return;
  found->second.cancelled = true;
  changed_.notify_all();
}

void WorkerPool::end(engine::WorkerId worker) {
  {
    const std::lock_guard lock(mutex_);
    workers_.erase(worker);
  }
  post([worker](engine::Engine& engine) { engine.kill(worker); });
}

// ---- How many workers there are

std::map<const Node*, std::int64_t> plan_workers(const std::vector<const Node*>& calls, const Resources& available,
                                                 std::int64_t threads) {
  const auto call_of = [](const Node* node) -> const Call& { return std::get<Call>(node->operation); };
  const auto is_open = [&](const Node* node) { return !call_of(node).concurrency && call_of(node).kind != "class"; };
  double cpus = available.cpus;  // for those whose number is open
  for (const Node* node : calls) {
    if (!is_open(node))
      cpus -= static_cast<double>(call_of(node).concurrency.value_or(1)) * call_of(node).resources.cpus;
  }
  const auto open = std::max<std::int64_t>(std::ranges::count_if(calls, is_open), 1);
  std::map<const Node*, std::int64_t> workers;
  run::ResourceLedger ledger(available);
  for (const Node* node : calls) {
    const Call& call = call_of(node);
    std::int64_t number = call.concurrency.value_or(1);
    if (is_open(node)) {
      const double share = cpus / static_cast<double>(open);
      number = call.resources.cpus > 0 ? static_cast<std::int64_t>(std::floor(share / call.resources.cpus)) : threads;
      number = std::max<std::int64_t>(number, 1);
    }
    if (const std::string shortage = ledger.shortage(call.resources); !shortage.empty())
      throw InvalidArgument(fmt::format("{} can never run: each of its workers needs {}", to_string(*node), shortage));
    // CPUs are accounting: an operator that was not told how many workers to have shares them, if it must.
    const bool may_share = number == 1 && !call.concurrency && call.resources.gpus == 0;
    for (std::int64_t worker = 0; worker < number; ++worker) {
      if (ledger.acquire(call.resources) || may_share) continue;
      throw InvalidArgument(fmt::format(
          "{} can never run: {} workers with {:g} CPUs and {:g} GPUs each are more than there is beside its "
          "other operators, {} in use: lower their concurrency, or what each of them needs",
          to_string(*node), number, call.resources.cpus, call.resources.gpus, ledger.usage()));
    }
    workers[node] = number;
  }
  return workers;
}

// ---- Callers

namespace {

class ProcessCallers;

class ProcessCaller final : public Caller {
 public:
  explicit ProcessCaller(ProcessCallers& all, std::string visible_devices);
  ~ProcessCaller() override;

  void call(std::span<const Block> batches, const Emit& emit) override;
  void cancel() override;

 private:
  void start();
  void stop();
  // What the worker has returned; empty: it has died.
  std::optional<ReadBlocks> try_call(const Value& ticket);
  [[noreturn]] void fail(const std::string& message) const;

  ProcessCallers& all_;
  std::string visible_devices_;
  std::mutex mutex_;  // of what follows
  std::optional<engine::WorkerId> worker_;
  bool cancelled_ = false;
  std::string death_;  // how the worker before has ended
};

class ProcessCallers final : public Callers {
 public:
  ProcessCallers(const Node& node, std::int64_t max_retries, std::shared_ptr<WorkerPool> pool)
      : name_(to_string(node)),
        call_(std::get<Call>(node.operation)),
        max_retries_(max_retries),
        pool_(std::move(pool)) {
    find_batch_call(call_.kind, call_.name);
    for (const run::ObjectUse& use : run::object_uses(call_.config.value()))
      store::write_object(pool_->folder(), use.id, get(Reference{store::kObjectKind, use.id}).bytes());
  }

  std::unique_ptr<Caller> make() override {
    return std::make_unique<ProcessCaller>(*this, pool_->take_gpus(call_.resources));
  }

  Value payload(const std::string& visible_devices) const {
    return {{"kind", call_.kind},
            {"name", call_.name},
            {"config", call_.config.value()},
            {"objects", pool_->folder().string()},
            {"visible_devices", pool_->resources().gpus > 0 ? Value(visible_devices) : Value()}};
  }
  const std::string& name() const { return name_; }
  const Call& function() const { return call_; }
  std::int64_t max_retries() const { return max_retries_; }
  WorkerPool& pool() { return *pool_; }

 private:
  std::string name_;
  Call call_;
  std::int64_t max_retries_;
  std::shared_ptr<WorkerPool> pool_;
};

ProcessCaller::ProcessCaller(ProcessCallers& all, std::string visible_devices)
    : all_(all), visible_devices_(std::move(visible_devices)) {}

ProcessCaller::~ProcessCaller() { stop(); }

void ProcessCaller::fail(const std::string& message) const { throw DatasetError(all_.name() + message); }

void ProcessCaller::start() {
  {
    const std::lock_guard lock(mutex_);
    if (cancelled_) throw Cancelled{};
    worker_ = all_.pool().start(all_.payload(visible_devices_), all_.function().resources);
  }
  std::visit(base::Overload{
                 [](const WorkerPool::Answer&) {},
                 [&](const WorkerPool::Failure& failure) { fail(": its constructor has thrown " + failure.message); },
                 [&](const WorkerPool::Death& death) { fail(" cannot begin: " + death.description); },
                 [](const WorkerPool::Cancellation&) { throw Cancelled{}; }},
             all_.pool().wait_for(*worker_));
}

void ProcessCaller::stop() {
  const std::lock_guard lock(mutex_);
  if (worker_) all_.pool().end(*worker_);
  worker_.reset();
}

void ProcessCaller::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (worker_) all_.pool().cancel(*worker_);
}

std::optional<ReadBlocks> ProcessCaller::try_call(const Value& ticket) {
  if (!worker_) start();
  all_.pool().give(*worker_, ticket);
  return std::visit(
      base::Overload{[&](const WorkerPool::Answer& answer) { return std::optional(open_shared(answer.content)); },
                     [&](const WorkerPool::Failure& failure) -> std::optional<ReadBlocks> {
                       fail(" has thrown " + failure.message);
                     },
                     [&](const WorkerPool::Death& death) -> std::optional<ReadBlocks> {
                       death_ = death.description;
                       return std::nullopt;
                     },
                     [](const WorkerPool::Cancellation&) -> std::optional<ReadBlocks> { throw Cancelled{}; }},
      all_.pool().wait_for(*worker_));
}

void ProcessCaller::call(std::span<const Block> batches, const Emit& emit) {
  std::optional<ReadBlocks> returned;
  {
    const SharedBlocks shared(batches);
    for (std::int64_t tries = 0; !returned; ++tries) {
      if (tries > all_.max_retries()) fail(fmt::format(" has failed {} times with the same batch: {}", tries, death_));
      returned = try_call(shared.ticket());
      if (!returned) stop();
    }
  }
  for (Block& block : returned->blocks) emit(std::move(block));
}

}  // namespace

std::unique_ptr<Callers> make_process_callers(const Node& node, std::int64_t max_retries,
                                              std::shared_ptr<WorkerPool> pool) {
  return std::make_unique<ProcessCallers>(node, max_retries, std::move(pool));
}

}  // namespace cadre::data
