// cadre plot: learning curves, a Pareto front, or the timeline of a training run, as a picture in SVG or PNG.
#include "cadre/tune/plot.h"

#include <fmt/format.h>

#include <memory>

#include "cadre/error.h"
#include "cadre/train.h"
#include "cli/commands.h"
#include "cli/find.h"
#include "cli/output.h"
#include "cli/scopes.h"
#include "cli/training_run.h"
#include "view/png.h"

namespace cadre::cli {
namespace {

struct PlotOptions {
  std::string experiment = {};
  std::string output = {};
  tune::PlotOptions plot = {};
  std::string scope = "last";
  std::vector<std::string> pareto = {};
  bool json = false;
};

// Writes the picture to standard output, or into a file whose path it prints.
void write(const PlotOptions& options, const std::string& name, const std::string& svg) {
  if (options.output == "-") return write_raw(svg);
  const std::filesystem::path file =
      options.output.empty() ? std::filesystem::path(name + ".svg") : std::filesystem::path(options.output);
  view::write_picture(svg, file);
  if (options.json) return write_json(Dict{{"file", std::filesystem::absolute(file).string()}});
  write_path(file.string());
}

std::string front_svg(const tune::ResultGrid& grid, const PlotOptions& options) {
  return tune::pareto_svg(
      grid, objectives_of(grid.summary(), options.pareto),
      {.scope = scope_of(options.scope), .logarithmic = options.plot.logarithmic, .title = options.plot.title});
}

std::string run_svg(const std::filesystem::path& directory, const PlotOptions& options) {
  if (!options.pareto.empty())
    throw InvalidArgument(options.experiment + " is a training run and has no trials, so it has no Pareto front");
  if (options.plot.metrics.empty()) return train::timeline_svg(directory);
  const TrainingRun run = read_training_run(directory);
  tune::PlotOptions plot = options.plot;
  for (std::string& metric : plot.metrics) metric = name_in_rows(run, metric);
  for (std::string& metric : plot.logarithmic) metric = name_in_rows(run, metric);
  return to_svg(as_experiment(run), plot);
}

void run(const PlotOptions& options) {
  if (!options.output.empty() && options.output != "-") view::picture_format_of(options.output);  // a quick refusal
  const Found found = find_directory(options.experiment);
  if (is_training_run(found.directory))
    return write(options, std::filesystem::canonical(found.directory).filename(), run_svg(found.directory, options));
  const tune::ResultGrid grid = open_experiment(found);
  write(options, grid.summary().name, options.pareto.empty() ? to_svg(grid, options.plot) : front_svg(grid, options));
}

}  // namespace

void add_plot(Command& program) {
  const auto options = std::make_shared<PlotOptions>();
  Command command = program.add_command("plot", "Draw learning curves, a Pareto front, or a run");
  command.option("experiment", &options->experiment, "Its directory, name or URI").required();
  const Option metrics =
      command.option("--metrics", &options->plot.metrics, "A panel each: a,config/lr [the experiment's]")
          .separated_by(',');
  command.option("--log", &options->plot.logarithmic, "Logarithmic axes, of metrics or of --x: a,b").separated_by(',');
  const Option x = command.option("--x", &options->plot.x, "What runs to the right, as time_total_s").show_default();
  command.option("--pareto", &options->pareto, "The front of two metrics: loss:min,accuracy:max")
      .separated_by(',')
      .excludes(metrics)
      .excludes(x);
  add_scope(command, &options->scope, "For --pareto: what counts");
  command.option("--title", &options->plot.title, "Above the picture [the experiment's name]");
  command.option("-o,--output", &options->output, "A .svg or .png; - prints SVG [<experiment>.svg]");
  command.flag("--json", &options->json, "Say the file's path as a JSON document");
  command.footer(std::string(kScopesFooter) + "\nWithout --metrics, the timeline of a training run is drawn.");
  command.on_call([options] { run(*options); });
}

}  // namespace cadre::cli
