// One trial that reports with a checkpoint at every step.
#include <thread>

#include "base/file.h"
#include "base/json.h"
#include "cadre/tune.h"
#include "experiment.h"
#include "figures.h"
#include "plain.h"
#include "statistics.h"
#include "workloads.h"

namespace cadre::bench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDurationsFile = "durations.json";

struct Settings {
  std::int64_t bytes = 10'000'000;
  std::int64_t steps = 100;
  std::int64_t keep = 2;
  std::int64_t step_ms = 0;
  fs::path storage_path;
};

// Durations of single steps, in seconds.
struct Durations {
  std::vector<double> report;  // the call of report(), including the user's own write
  std::vector<double> write;   // the user's own write

  void save(const fs::path& file) const {
    const auto to_list = [](const std::vector<double>& values) { return List(values.begin(), values.end()); };
    base::replace_file(file, base::to_json({{"report", to_list(report)}, {"write", to_list(write)}}));
  }
  static Durations load(const fs::path& file) {
    const Config stored(base::parse_json(base::read_file(file), file.string()).dict());
    return {stored.get<std::vector<double>>("report"), stored.get<std::vector<double>>("write")};
  }
  // Returns the time that report() takes beyond the user's own write.
  std::vector<double> beyond_write() const {
    std::vector<double> beyond;
    for (std::size_t i = 0; i < report.size(); ++i) beyond.push_back(report[i] - write[i]);
    return beyond;
  }
};

void save_at_every_step(const Config& config) {
  const std::string state = random_bytes(config.get<std::int64_t>("bytes"));
  const auto steps = config.get<std::int64_t>("steps");
  Durations durations;
  for (std::int64_t step = 1; step <= steps; ++step) {
    std::this_thread::sleep_for(std::chrono::milliseconds(config.get<std::int64_t>("step_ms")));
    double write_s = 0;
    const Stopwatch report;
    tune::report({{"loss", 1.0 / static_cast<double>(step)}}, [&](const fs::path& directory) {
      const Stopwatch write;
      write_file(directory / "state", state);
      write_s = write.seconds();
    });
    durations.report.push_back(report.seconds());
    durations.write.push_back(write_s);
  }
  durations.save(tune::get_context().get_trial_dir() / kDurationsFile);
}

// Does the same writes without Cadre. Returns the durations of a write and its rename.
std::vector<double> write_plainly(const Settings& settings) {
  Process process = Process::fork([&] {
    const std::string state = random_bytes(settings.bytes);
    PlainCheckpoints checkpoints(settings.storage_path / "plain", settings.keep);
    List durations;
    for (std::int64_t step = 0; step < settings.steps; ++step) {
      std::this_thread::sleep_for(std::chrono::milliseconds(settings.step_ms));
      const Stopwatch stopwatch;
      checkpoints.write(state);
      durations.emplace_back(stopwatch.seconds());
    }
    return Dict{{"durations", durations}};
  });
  return Config(process.wait().said).get<std::vector<double>>("durations");
}

std::optional<Budget> budget_of(std::int64_t bytes) {
  if (bytes <= 1024) return Budget::at_most(0.3);
  if (bytes <= 10 << 20) return Budget::at_most(1);
  return std::nullopt;
}

// Returns "10 MB", "1.5 KB" or "200 bytes".
std::string size_text(std::int64_t bytes) {
  const auto in = [bytes](double unit, const char* name) {
    std::string text;
    base::append_python_float(text, static_cast<double>(bytes) / unit);
    if (text.ends_with(".0")) text.resize(text.size() - 2);
    return text + name;
  };
  if (bytes >= 1'000'000) return in(1e6, " MB");
  return bytes >= 1000 ? in(1e3, " KB") : in(1, " bytes");
}

void measure(const Settings& settings) {
  const Run run = run_experiment(
      {.trainable = fn<save_at_every_step>,
       .options = {.param_space = {{"bytes", settings.bytes}, {"steps", settings.steps}, {"step_ms", settings.step_ms}},
                   .run_config = {.name = "checkpoints",
                                  .storage_path = settings.storage_path,
                                  .checkpoint_config = {.num_to_keep = settings.keep}}}});
  const std::vector<double> plain = write_plainly(settings);
  const fs::path trial = tune::ResultGrid::from_directory(run.directory)[0].path;
  const Durations durations = Durations::load(trial / kDurationsFile);
  const std::vector<double> beyond = durations.beyond_write();
  const double ratio = median(durations.report) / median(plain);
  const double bytes_ratio =
      static_cast<double>(run.usage.written_bytes) / static_cast<double>(settings.bytes * settings.steps);
  Dict facts = count(run.directory);
  facts.insert(facts.end(), {{"report_p50_ms", median(durations.report) * 1e3},
                             {"report_p99_ms", quantile(durations.report, 0.99) * 1e3},
                             {"write_p50_ms", median(durations.write) * 1e3},
                             {"write_p99_ms", quantile(durations.write, 0.99) * 1e3},
                             {"beyond_write_p50_ms", median(beyond) * 1e3},
                             {"beyond_write_p99_ms", quantile(beyond, 0.99) * 1e3},
                             {"plain_write_rename_p50_ms", median(plain) * 1e3},
                             {"plain_write_rename_p99_ms", quantile(plain, 0.99) * 1e3},
                             {"written_bytes", run.usage.written_bytes},
                             {"bytes_ratio", bytes_ratio},
                             {"ratio", ratio}});
  const std::string what = size_text(settings.bytes) + " checkpoint, ";
  std::vector<Figure> figures{{.name = what + "report() beyond the user's own write",
                               .value = median(beyond) * 1e3,
                               .unit = "ms",
                               .budget = budget_of(settings.bytes),
                               .ratio = ratio}};
  // Smaller checkpoints are smaller than a report's rows and files.
  constexpr std::int64_t large = 1'000'000;
  if (settings.bytes >= large)
    figures.push_back(
        {.name = what + "bytes written", .value = bytes_ratio, .unit = "x", .budget = Budget::at_most(1.01)});
  print_line(
      "checkpoints",
      {{"bytes", settings.bytes}, {"steps", settings.steps}, {"keep", settings.keep}, {"step_ms", settings.step_ms}},
      run.wall_s, run.usage.cpu_s, facts, figures);
}

}  // namespace

void add_checkpoints(cli::Command& program) {
  const auto settings = std::make_shared<Settings>();
  cli::Command workload =
      add_workload(program, "checkpoints", "a trial that reports a checkpoint at every step", settings, measure);
  workload.option("--bytes", &settings->bytes, "of a checkpoint");
  workload.option("--steps", &settings->steps);
  workload.option("--keep", &settings->keep, "checkpoints: CheckpointConfig::num_to_keep");
  workload.option("--step-ms", &settings->step_ms, "time between two reports, slept");
}

}  // namespace cadre::bench
