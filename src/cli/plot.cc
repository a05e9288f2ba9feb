// cadre plot: learning curves, or the timeline of a training run, as an SVG file.
#include "cadre/tune/plot.h"

#include <fmt/format.h>

#include <memory>

#include "base/file.h"
#include "cadre/train.h"

#include "cli/commands.h"
#include "cli/find.h"
#include "cli/output.h"
#include "cli/training_run.h"

namespace cadre::cli {
namespace {

struct Options {
  std::string experiment = {};
  std::string output = {};
  tune::PlotOptions plot = {};
  bool json = false;
};

// Writes the picture to standard output, or into a file whose path it prints.
void write(const Options& options, const std::string& name, const std::string& svg) {
  if (options.output == "-") return write_raw(svg);
  const std::filesystem::path file =
      options.output.empty() ? std::filesystem::path(name + ".svg") : std::filesystem::path(options.output);
  base::replace_file(file, svg);
  if (options.json) return write_json(Dict{{"file", std::filesystem::absolute(file).string()}});
  write_path(file.string());
}

void run(const Options& options) {
  const Found found = find_directory(options.experiment);
  if (is_training_run(found.directory))
    return write(options, std::filesystem::canonical(found.directory).filename(), train::timeline_svg(found.directory));
  const tune::ResultGrid grid = open_experiment(options.experiment);
  write(options, grid.summary().name, to_svg(grid, options.plot));
}

}  // namespace

void add_plot(Command& program) {
  const auto options = std::make_shared<Options>();
  Command command = program.add_command("plot", "Draw learning curves, or a run over time");
  command.option("experiment", &options->experiment, "Its directory, name or URI").required();
  command.option("--metrics", &options->plot.metrics, "A panel each: a,config/lr [the experiment's]").separated_by(',');
  command.option("--log", &options->plot.logarithmic, "Metrics with a logarithmic axis: a,b").separated_by(',');
  command.option("--x", &options->plot.x, "What runs to the right, as time_total_s").show_default();
  command.option("--title", &options->plot.title, "Above the picture [the experiment's name]");
  command.option("-o,--output", &options->output, "The file; - for standard output [<experiment>.svg]");
  command.flag("--json", &options->json, "Say the file's path as a JSON document");
  command.on_call([options] { run(*options); });
}

}  // namespace cadre::cli
