// cadre plot: learning curves as an SVG file.
#include "cadre/tune/plot.h"

#include <fmt/format.h>

#include <memory>

#include "cli/commands.h"
#include "cli/find.h"
#include "cli/output.h"

namespace cadre::cli {
namespace {

struct Options {
  std::string experiment = {};
  std::string output = {};
  tune::PlotOptions plot = {};
  bool json = false;
};

void run(const Options& options) {
  const tune::ResultGrid grid = open_experiment(options.experiment);
  if (options.output == "-") return write_raw(to_svg(grid, options.plot));
  const std::filesystem::path file = options.output.empty() ? std::filesystem::path(grid.summary().name + ".svg")
                                                            : std::filesystem::path(options.output);
  write_svg(grid, file, options.plot);
  if (options.json) return write_json(Dict{{"file", std::filesystem::absolute(file).string()}});
  write_path(file.string());
}

}  // namespace

void add_plot(CLI::App& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("plot", "Draw learning curves as an SVG file");
  command->add_option("experiment", options->experiment, "Its directory, name or URI")->required();
  command->add_option("--metrics", options->plot.metrics, "A panel each: a,b [the experiment's, or four]")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--log", options->plot.logarithmic, "Metrics with a logarithmic axis: a,b")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--x", options->plot.x, "What runs to the right, as time_total_s")->capture_default_str();
  command->add_option("--title", options->plot.title, "Above the picture [the experiment's name]");
  command->add_option("-o,--output", options->output, "The file; - for standard output [<experiment>.svg]");
  command->add_flag("--json", options->json, "Say the file's path as a JSON document");
  command->callback([options] { run(*options); });
}

}  // namespace cadre::cli
