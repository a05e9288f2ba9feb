#include "data/worker_pool.h"

#include <arrow/record_batch.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ranges>
#include <utility>

#include "base/directory.h"
#include "base/file.h"
#include "base/overload.h"
#include "cadre/object.h"
#include "channel/worker_end.h"
#include "control/object_uses.h"
#include "data/functions.h"
#include "data/shared_blocks.h"
#include "data/stream.h"
#include "resources/gpus.h"
#include "store/held_objects.h"
#include "store/object_files.h"
#include "worker/entries.h"
#include "worker/root_engine.h"
#include "worker/worker.h"

namespace cadre::data {
namespace fs = std::filesystem;
namespace {

constexpr const char* kEntry = "cadre dataset worker";
// Tasks per worker: one in progress, and one ready for when that is done.
constexpr std::int64_t kTasksInFlight = 2;
constexpr auto kTimeToLeave = std::chrono::seconds(10);  // for idle workers to destroy their objects

using Clock = std::chrono::steady_clock;

// ---- In the worker: requests batches, calls the function, and sends the results with the next request.
Value run_data_worker(channel::WorkerEnd& controller, const Value& payload) {
  const Config task(payload);
  if (const Value& devices = task.at("visible_devices"); devices.is_string())
    ::setenv("CUDA_VISIBLE_DEVICES", devices.get<std::string>().c_str(), 1);
  store::set_experiment_of_objects(task.get<std::string>("objects"));
  const BatchCall function = find_batch_call({.kind = task.get<std::string>("kind"),
                                              .name = task.get<std::string>("name"),
                                              .config = Config(task.at("config")),
                                              .host_function = {task.at("host_function")}},
                                             {.epoch = task.get<std::uint64_t>("epoch")})();
  channel::Request request;
  std::optional<SharedBlocks> returned;  // kept until the reply, when the controller has mapped it
  for (;;) {
    const channel::Reply reply = controller.call(request);
    returned.reset();
    if (reply.content.is_null()) return {};
    const auto began = Clock::now();
    std::vector<Block> results;
    for (const Block& batch : read_shared(map_shared(reply.content)).blocks) {
      Block result = function(Batch(batch)).arrow();
      if (result->num_rows() > 0) results.push_back(std::move(result));
    }
    const std::chrono::duration<double> taken = Clock::now() - began;
    request.content = {{"blocks", returned.emplace(results).ticket()}, {"taken_s", taken.count()}};
  }
}

const bool registered = [] {
  worker::register_entry(kEntry, run_data_worker);
  return true;
}();

}  // namespace

// ---- The pool

WorkerPool::WorkerPool(bool uses_gpus) : folder_("cadre-dataset-workers") {
  static_cast<void>(registered);
  thread_ = std::thread([this, uses_gpus] { work(uses_gpus); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return engine_ != nullptr || engine_error_ != nullptr; });
  if (engine_error_ == nullptr) {
    resources_ = engine_->resources();
    ledger_.emplace(resources_);
    return;
  }
  lock.unlock();
  thread_.join();
  std::rethrow_exception(engine_error_);
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
    if (engine_ != nullptr) engine_->wake();
  }
  thread_.join();
}

void WorkerPool::work(bool uses_gpus) {
  const auto fail = [this](std::unique_ptr<engine::Engine> dropped) {
    const std::lock_guard lock(mutex_);
    engine_error_ = std::current_exception();
    dropped.reset();
    changed_.notify_all();
  };
  try {
    auto made = uses_gpus ? worker::make_root_engine() : worker::make_further_engine();
    const std::lock_guard lock(mutex_);
    engine_ = std::move(made);
    changed_.notify_all();
  } catch (...) {
    return fail(nullptr);
  }
  try {
    std::optional<Clock::time_point> latest_end;
    for (;;) {
      std::vector<Command> commands;
      bool waits = true;
      {
        const std::lock_guard lock(mutex_);
        commands = std::exchange(commands_, {});
        if (ends_ && !latest_end) latest_end = Clock::now() + kTimeToLeave;
        waits = !ends_ || (somebody_leaves() && Clock::now() < *latest_end);
      }
      for (const Command& command : commands) command(*engine_);
      if (!waits) break;
      const auto timeout = latest_end ? std::optional(*latest_end - Clock::now()) : std::nullopt;
      for (engine::Event& event : engine_->wait(timeout)) handle(event);
    }
  } catch (...) {  // also without memory: nothing may leave the thread
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

void WorkerPool::handle(engine::Event& event) {
  if (auto* received = std::get_if<engine::Received>(&event)) {
    if (auto* request = std::get_if<channel::Request>(&received->message)) handle(received->worker, *request);
    if (auto* failed = std::get_if<channel::Failed>(&received->message))
      handle_end(received->worker, Failure{std::move(failed->message)});
    return;
  }
  if (!std::holds_alternative<engine::Exited>(event)) return;  // of a node
  const auto& exited = std::get<engine::Exited>(event);
  {
    const std::lock_guard lock(mutex_);
    workers_.at(exited.worker).has_exited = true;
  }
  handle_end(exited.worker, Death{"its worker " + engine::to_string(exited.exit) + engine::output_text(exited.exit)});
}

// Maps the result's memory now, because another thread reads it, perhaps after the worker has finished further tasks.
WorkerPool::Answer WorkerPool::to_answer(Value content) {
  Answer answer{std::move(content), std::nullopt};
  try {
    answer.memory = map_shared(Config(answer.content).at("blocks"));
  } catch (const StorageError&) {  // the worker has died meanwhile, and its memory was freed
  }
  return answer;
}

// Handles a worker's request for a task, which contains the result of the previous one.
void WorkerPool::handle(engine::WorkerId id, channel::Request& request) {
  const std::lock_guard lock(mutex_);
  Worker& worker = workers_.at(id);
  if (worker.asked > 0) worker.answers.emplace(worker.asked, to_answer(std::move(request.content)));
  ++worker.asked;
  worker.call = request.call;
  if (!worker.waiting.empty()) {
    engine_->reply(id, channel::Reply{.content = std::move(worker.waiting.front()), .call = worker.call});
    worker.waiting.pop_front();
  }
  changed_.notify_all();
}

void WorkerPool::handle_end(engine::WorkerId id, std::variant<Failure, Death> end) {
  const std::lock_guard lock(mutex_);
  Worker& worker = workers_.at(id);
  if (!worker.end) worker.end = std::move(end);  // the first end is the cause
  changed_.notify_all();
}

fs::path WorkerPool::folder_of(engine::WorkerId worker) const { return folder() / fmt::format("worker_{}", worker); }

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
  return resources::visible_devices(ledger_->acquire(resources).value_or(resources::Gpus()));
}

std::int64_t WorkerPool::give(engine::WorkerId id, const Value& task) {
  const std::lock_guard lock(mutex_);
  Worker& worker = workers_.at(id);
  if (++worker.given > worker.asked) {
    worker.waiting.push_back(task);
  } else {
    commands_.emplace_back([id, reply = channel::Reply{.content = task, .call = worker.call}](engine::Engine& engine) {
      engine.reply(id, reply);
    });
    if (engine_ != nullptr) engine_->wake();
  }
  return worker.given;
}

WorkerPool::Outcome WorkerPool::wait_for(engine::WorkerId id, std::int64_t task) {
  std::unique_lock lock(mutex_);
  Worker& worker = workers_.at(id);
  changed_.wait(lock, [&] {
    return worker.answers.contains(task) || worker.end || worker.cancelled || engine_error_ != nullptr;
  });
  if (worker.cancelled) return Cancellation{};
  if (auto answer = worker.answers.extract(task)) return std::move(answer.mapped());
  if (!worker.end) std::rethrow_exception(engine_error_);
  return std::visit(
      base::Overload{[&](const Failure& failure) -> Outcome { return Failure{failure.message, worker.asked > 0}; },
                     [&](const Death& death) -> Outcome {
                       return Death{death.description, worker.asked > 0, task <= worker.asked};
                     }},
      *worker.end);
}

void WorkerPool::cancel(engine::WorkerId worker) {
  const std::lock_guard lock(mutex_);
  workers_.at(worker).cancelled = true;
  changed_.notify_all();
}

void WorkerPool::end(engine::WorkerId id) {
  const std::lock_guard lock(mutex_);
  Worker& worker = workers_.at(id);
  worker.leaves = worker.asked > worker.given;
  commands_.emplace_back([id, leaves = worker.leaves, call = worker.call](engine::Engine& engine) {
    leaves ? engine.reply(id, channel::Reply{.call = call}) : engine.kill(id);
  });
  if (engine_ != nullptr) engine_->wake();
}

bool WorkerPool::somebody_leaves() const {
  return std::ranges::any_of(workers_,
                             [](const auto& entry) { return entry.second.leaves && !entry.second.has_exited; });
}

// ---- Numbers of workers

std::map<const Node*, std::int64_t> plan_workers(const std::vector<const Node*>& calls, const Resources& available,
                                                 std::int64_t threads) {
  const auto call_of = [](const Node* node) -> const Call& { return std::get<Call>(node->operation); };
  const auto is_open = [&](const Node* node) { return !call_of(node).concurrency && call_of(node).kind != "class"; };
  double cpus = available.cpus;  // left for operators without a fixed number
  for (const Node* node : calls) {
    if (!is_open(node))
      cpus -= static_cast<double>(call_of(node).concurrency.value_or(1)) * call_of(node).resources.cpus;
  }
  const auto open = std::max<std::int64_t>(std::ranges::count_if(calls, is_open), 1);
  std::map<const Node*, std::int64_t> workers;
  resources::ResourceLedger ledger(available);
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
    // CPUs are only accounting: an operator without a requested number of workers shares them if necessary.
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

// Used by kTasksInFlight threads at the same time.
class ProcessCaller final : public Caller {
 public:
  explicit ProcessCaller(ProcessCallers& all);
  ~ProcessCaller() override;

  std::int64_t take_turn() override;
  Duration call(std::int64_t turn, std::span<const Block> batches, const Emit& emit) override;
  void cancel() override;

 private:
  struct Given {
    engine::WorkerId worker = 0;
    std::int64_t task = 0;
  };
  struct Result {
    ReadBlocks blocks = {};
    Duration taken = {};
  };
  using Lock = std::unique_lock<std::mutex>;

  void start(const Lock& lock);
  // Waits until all earlier turns have given their tasks.
  Given give_in_turn(std::int64_t turn, const Value& task);
  Given give(const Lock& lock, const Value& task);
  // Waits for the result. Returns nothing if the worker has died: then sets `death` to the reason, and increments
  // `deaths` if the task may have caused it.
  std::optional<Result> wait_for(const Given& given, std::string& death, std::int64_t& deaths);
  static Result to_result(WorkerPool::Answer answer);
  void forget(engine::WorkerId worker);
  [[noreturn]] void fail(const std::string& message) const;

  ProcessCallers& all_;
  std::string visible_devices_;
  std::mutex mutex_;  // guards the following members
  std::condition_variable changed_;
  std::int64_t turns_ = 0;                  // number taken
  std::int64_t given_ = 0;                  // number of turns that have given their task
  std::optional<engine::WorkerId> worker_;  // empty before the first task, and after the last worker has died
  bool cancelled_ = false;
};

class ProcessCallers final : public Callers {
 public:
  ProcessCallers(const Node& node, const CallContext& context, std::int64_t max_retries,
                 std::shared_ptr<WorkerPool> pool)
      : name_(to_string(node)),
        call_(std::get<Call>(node.operation)),
        context_(context),
        max_retries_(max_retries),
        pool_(std::move(pool)) {
    find_batch_call(call_);
    for (const Value& value : {call_.config.value(), call_.host_function.value}) {
      for (const control::ObjectUse& use : control::object_uses(value))
        store::write_object(pool_->folder(), use.id, get(Reference{store::kObjectKind, use.id}).bytes());
    }
  }

  std::int64_t tasks_in_flight() const override { return kTasksInFlight; }
  std::unique_ptr<Caller> make() override { return std::make_unique<ProcessCaller>(*this); }

  Value payload(const std::string& visible_devices) const {
    return {{"kind", call_.kind},
            {"name", call_.name},
            {"config", call_.config.value()},
            {"epoch", context_.epoch},
            {"host_function", call_.host_function.value},
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
  CallContext context_;
  std::int64_t max_retries_;
  std::shared_ptr<WorkerPool> pool_;
};

ProcessCaller::ProcessCaller(ProcessCallers& all)
    : all_(all), visible_devices_(all.pool().take_gpus(all.function().resources)) {
  const Lock lock(mutex_);
  if (all_.function().kind == "class") start(lock);  // starts now, because its constructor may be slow
}

ProcessCaller::~ProcessCaller() {
  if (worker_) all_.pool().end(*worker_);
}

void ProcessCaller::fail(const std::string& message) const { throw DatasetError(all_.name() + message); }

void ProcessCaller::start(const Lock& /*lock*/) {
  worker_ = all_.pool().start(all_.payload(visible_devices_), all_.function().resources);
}

std::int64_t ProcessCaller::take_turn() {
  const Lock lock(mutex_);
  return ++turns_;
}

void ProcessCaller::cancel() {
  const Lock lock(mutex_);
  cancelled_ = true;
  if (worker_) all_.pool().cancel(*worker_);
  changed_.notify_all();
}

ProcessCaller::Given ProcessCaller::give_in_turn(std::int64_t turn, const Value& task) {
  Lock lock(mutex_);
  changed_.wait(lock, [&] { return given_ == turn - 1 || cancelled_; });
  given_ = turn;
  changed_.notify_all();
  return give(lock, task);
}

ProcessCaller::Given ProcessCaller::give(const Lock& lock, const Value& task) {
  if (cancelled_) throw Cancelled{};
  if (!worker_) start(lock);
  return {*worker_, all_.pool().give(*worker_, task)};
}

// Drops a dead worker; the next task starts a new one.
void ProcessCaller::forget(engine::WorkerId worker) {
  const Lock lock(mutex_);
  if (worker_ == worker) worker_.reset();
}

ProcessCaller::Result ProcessCaller::to_result(WorkerPool::Answer answer) {
  const Config entries(answer.content);
  const std::chrono::duration<double> taken(entries.get<double>("taken_s"));
  return {read_shared(*std::move(answer.memory)), std::chrono::duration_cast<Duration>(taken)};
}

std::optional<ProcessCaller::Result> ProcessCaller::wait_for(const Given& given, std::string& death,
                                                             std::int64_t& deaths) {
  WorkerPool::Outcome outcome = all_.pool().wait_for(given.worker, given.task);
  if (auto* answer = std::get_if<WorkerPool::Answer>(&outcome)) {
    if (answer->memory) return to_result(std::move(*answer));
    all_.pool().end(given.worker);
    outcome = all_.pool().wait_for(given.worker, given.task);
  }
  if (const auto* failure = std::get_if<WorkerPool::Failure>(&outcome))
    fail((failure->was_ready ? " has thrown " : ": its constructor has thrown ") + failure->message);
  const auto* died = std::get_if<WorkerPool::Death>(&outcome);
  if (died == nullptr) throw Cancelled{};
  forget(given.worker);
  death = died->was_ready ? died->description : "it cannot begin: " + died->description;
  if (died->was_begun || !died->was_ready) ++deaths;
  return std::nullopt;
}

ProcessCaller::Duration ProcessCaller::call(std::int64_t turn, std::span<const Block> batches, const Emit& emit) {
  std::optional<Result> result;
  {
    const SharedBlocks shared(batches);
    std::string death;
    std::int64_t deaths = 0;
    Given given = give_in_turn(turn, shared.ticket());
    while (!(result = wait_for(given, death, deaths))) {
      if (deaths > all_.max_retries()) fail(fmt::format(" has failed {} times with the same batch: {}", deaths, death));
      const Lock lock(mutex_);
      given = give(lock, shared.ticket());
    }
  }
  for (Block& block : result->blocks.blocks) emit(std::move(block));
  return result->taken;
}

}  // namespace

std::unique_ptr<Callers> make_process_callers(const Node& node, const CallContext& context, std::int64_t max_retries,
                                              std::shared_ptr<WorkerPool> pool) {
  return std::make_unique<ProcessCallers>(node, context, max_retries, std::move(pool));
}

}  // namespace cadre::data
