// Training runs: how soon a worker group starts, and the cost of a report by all ranks.
#include "cadre/train.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "figures.h"
#include "plain.h"
#include "statistics.h"
#include "training.h"
#include "workloads.h"

namespace cadre::bench {
namespace {

namespace fs = std::filesystem;

struct Settings {
  std::int64_t workers = 2;
  std::int64_t reports = 2000;
  std::int64_t starts = 5;
  std::int64_t bytes = 1'000'000;
  std::int64_t steps = 100;
  std::string mode = "sync";
  fs::path storage_path;
};

// ---- Functions of the ranks

// Returns when this rank reached its first line, after all ranks have. The run's return value is that of rank 0.
Value say_when() {
  const double began = now_seconds();
  train::barrier();
  return began;
}

Value rank_reports(const Config& config) {
  const auto reports = config.get<std::int64_t>("reports");
  List times;
  for (std::int64_t i = 1; i <= reports; ++i) {
    const Stopwatch stopwatch;
    train::report({{"loss", 1.0 / static_cast<double>(i)}, {"epoch", i}});
    times.emplace_back(stopwatch.seconds());
  }
  return times;
}

// Returns the times that writing the file and report() take, and those that report() takes beyond writing: into a
// directory made by Cadre, or with async into a directory of the user's, as on another file system.
Value rank_saves(const Config& config) {
  const std::string bytes = random_bytes(config.get<std::int64_t>("bytes"));
  const bool async = config.get<std::string>("mode") == "async";
  List whole;
  List beyond;
  for (std::int64_t i = 1; i <= config.get<std::int64_t>("steps"); ++i) {
    double own_time = 0;
    const Stopwatch stopwatch;
    if (train::get_context().get_world_rank() != 0) {
      train::report({{"step", i}});
    } else if (async) {
      const fs::path own = train::get_context().get_storage().path().parent_path() / ("own_" + std::to_string(i));
      const Stopwatch writing;
      fs::create_directory(own);
      write_file(own / "model", bytes);
      own_time = writing.seconds();
      train::report({{"step", i}}, Checkpoint::from_directory(own),
                    {.checkpoint_upload_mode = train::CheckpointUploadMode::async});
    } else {
      train::report({{"step", i}}, [&](const fs::path& directory) {
        const Stopwatch writing;
        write_file(directory / "model", bytes);
        own_time = writing.seconds();
      });
    }
    const double seconds = stopwatch.seconds();
    whole.emplace_back(seconds);
    beyond.emplace_back(seconds - own_time);
  }
  List both;
  both.emplace_back(std::move(whole));
  both.emplace_back(std::move(beyond));
  return both;
}

// ---- The same without Cadre

// Returns the times in seconds that `work` returns in a process of its own.
std::vector<double> plain_seconds(const std::function<List()>& work) {
  Process process = Process::fork([&] { return Dict{{"times", work()}}; });
  return Config(process.wait().said).get<std::vector<double>>("times");
}

// Forks so many processes. Returns the time until the first one has reached its first line.
double start_processes(std::int64_t count) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw Error("cannot make a pipe");
  const base::FileDescriptor output(ends[0]);
  const base::FileDescriptor input(ends[1]);
  const double began = now_seconds();
  fork_processes(count, count, [&](std::int64_t number) {
    const double reached = now_seconds();
    if (number == 0 && ::write(input.get(), &reached, sizeof reached) != static_cast<ssize_t>(sizeof reached))
      throw Error("cannot write to a pipe");
  });
  double reached = 0;
  if (::read(output.get(), &reached, sizeof reached) != static_cast<ssize_t>(sizeof reached))
    throw Error("cannot read from a pipe");
  return reached - began;
}

// ---- Runs

TrainRun train_with(const Settings& settings, train::Loop loop, const std::string& name, Config config) {
  return run_training(settings.storage_path, name, static_cast<double>(settings.workers), std::move(loop),
                      {.train_loop_config = std::move(config),
                       .scaling_config = {.num_workers = settings.workers},
                       .run_config = {.checkpoint_config = {.num_to_keep = 2}}});
}

std::vector<double> milliseconds(const Value& times) {
  std::vector<double> all;
  for (const Value& time : times.items()) all.push_back(time.get<double>() * 1e3);
  return all;
}

Dict count(const train::Result& result) {
  return {{"results", result.metrics_history.size()}, {"checkpoints", result.best_checkpoints.size()}};
}

void measure_start(const Settings& settings) {
  std::vector<double> seconds;
  TrainRun run;
  for (std::int64_t i = 0; i < settings.starts; ++i) {
    run = train_with(settings, fn<say_when>, "start_" + std::to_string(i), {});
    seconds.push_back(run.result.return_value.get<double>() - run.began_s);
  }
  const std::vector<double> plain = plain_seconds([&] {
    List times;
    for (std::int64_t i = 0; i < settings.starts; ++i) times.emplace_back(start_processes(settings.workers));
    return times;
  });
  print_line("train-start", {{"workers", settings.workers}, {"starts", settings.starts}}, run.wall_s, run.usage.cpu_s,
             {{"median_s", median(seconds)}, {"best_s", best(seconds)}, {"plain_median_s", median(plain)}},
             {{.name = "Train: fit() to the first line of user code",
               .value = median(seconds),
               .unit = "s",
               .budget = Budget::at_most(0.5),
               .ratio = median(seconds) / median(plain)}});
}

void measure_reports(const Settings& settings) {
  const TrainRun run = train_with(settings, fn<rank_reports>, "reports", {{"reports", settings.reports}});
  const std::vector<double> times = milliseconds(run.result.return_value);
  Dict facts = count(run.result);
  facts.insert(facts.end(), {{"report_p50_ms", median(times)}, {"report_p99_ms", quantile(times, 0.99)}});
  print_line("train-reports", {{"workers", settings.workers}, {"reports", settings.reports}}, run.wall_s,
             run.usage.cpu_s, facts,
             {{.name = "Train: a report of " + std::to_string(settings.workers) + " workers",
               .value = median(times),
               .unit = "ms",
               .budget = Budget::at_most(0.5)}});
}

void measure_checkpoints(const Settings& settings) {
  const TrainRun run = train_with(settings, fn<rank_saves>, "checkpoints_" + settings.mode,
                                  {{"bytes", settings.bytes}, {"steps", settings.steps}, {"mode", settings.mode}});
  const List both = run.result.return_value.items();
  const std::vector<double> whole = milliseconds(both.at(0));
  const std::vector<double> beyond = milliseconds(both.at(1));
  const std::vector<double> plain = plain_seconds([&] {
    PlainCheckpoints checkpoints(settings.storage_path / "plain", 2);
    const std::string bytes = random_bytes(settings.bytes);
    List times;
    for (std::int64_t i = 0; i < settings.steps; ++i) {
      const Stopwatch stopwatch;
      checkpoints.write(bytes);
      times.emplace_back(stopwatch.seconds());
    }
    return times;
  });
  const double plain_ms = median(plain) * 1e3;
  const double ratio = median(whole) / plain_ms;
  Dict facts = count(run.result);
  facts.insert(facts.end(), {{"write_and_report_p50_ms", median(whole)},
                             {"beyond_write_p50_ms", median(beyond)},
                             {"beyond_write_p99_ms", quantile(beyond, 0.99)},
                             {"plain_write_rename_p50_ms", plain_ms},
                             {"ratio", ratio}});
  print_line(
      "train-checkpoints",
      {{"workers", settings.workers}, {"bytes", settings.bytes}, {"steps", settings.steps}, {"mode", settings.mode}},
      run.wall_s, run.usage.cpu_s, facts,
      {{.name = settings.mode == "sync" ? "Train: a checkpoint, report() beyond the user's own write"
                                        : "Train: the same with async, out of a directory of the user's",
        .value = median(beyond),
        .unit = "ms",
        .ratio = ratio}});
}

}  // namespace

void add_train(cli::Command& program) {
  const auto settings = std::make_shared<Settings>();
  const auto add = [&](const char* name, const char* description, void (*measure)(const Settings&)) -> cli::Command {
    cli::Command workload = add_workload(program, name, description, settings, measure);
    workload.option("--workers", &settings->workers, "ranks of the group");
    return workload;
  };
  add("train-start", "training runs that end at once", measure_start)
      .option("--starts", &settings->starts, "of which the median counts");
  add("train-reports", "ranks that do nothing but report", measure_reports)
      .option("--reports", &settings->reports, "of each rank");
  cli::Command checkpoints = add("train-checkpoints", "rank 0 saves at each step", measure_checkpoints);
  checkpoints.option("--bytes", &settings->bytes, "of a checkpoint");
  checkpoints.option("--steps", &settings->steps, "of the run");
  checkpoints.option("--mode", &settings->mode, "of the upload").one_of({"sync", "async"});
}

}  // namespace cadre::bench
