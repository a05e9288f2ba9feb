// cadre report: one page with everything about experiments, for a browser.
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/output_file.h"
#include "cadre/error.h"
#include "cli/commands.h"
#include "cli/find.h"
#include "cli/output.h"
#include "cli/report_document.h"
#include "cli/training_run.h"
#include "report/document.h"
#include "report/page.h"

namespace cadre::cli {
namespace {

namespace fs = std::filesystem;

struct ReportOptions {
  std::vector<std::string> experiments = {};
  std::string output = {};
  std::string title = {};
  bool json = false;
};

Value document_of(const std::string& experiment) {
  const Found found = find_directory(experiment);
  if (is_training_run(found.directory)) return report_document(read_training_run(found.directory), found.directory);
  return report_document(open_experiment(found));
}

std::string name_of(const Value& document) { return Config(document).get<std::string>("name"); }

fs::path output_file(const ReportOptions& options, const std::vector<Value>& documents) {
  if (!options.output.empty()) return options.output;
  return documents.size() == 1 ? name_of(documents.front()) + ".html" : std::string("report.html");
}

// Reads all experiments. Adds a message for each that cannot be read.
std::vector<Value> read(const std::vector<std::string>& experiments, std::vector<std::string>& faults) {
  std::vector<Value> documents;
  for (const std::string& experiment : experiments) {
    try {
      documents.push_back(document_of(experiment));
    } catch (const Error& error) {
      if (experiments.size() == 1) throw;
      faults.push_back(fmt::format("{}: {}", experiment, error.what()));
      documents.push_back(report::unreadable(experiment, error.what()));
    }
  }
  return documents;
}

void run(const ReportOptions& options) {
  std::vector<std::string> faults;
  const std::vector<Value> documents = read(options.experiments, faults);
  for (const std::string& fault : faults) fmt::print(stderr, "cadre: {}\n", shown_lines(fault));
  if (faults.size() == documents.size()) throw StorageError("there is no report: none of the experiments can be read");
  std::string title = options.title;
  for (std::size_t i = 0; options.title.empty() && i < documents.size(); ++i)
    title += (i == 0 ? "" : ", ") + name_of(documents[i]);
  const std::string page = report::page_of(documents, title);
  if (options.output == "-") {
    write_raw(page);
  } else {
    const fs::path file = output_file(options, documents);
    base::write_output_file(file, page);
    options.json ? write_json(Dict{{"file", fs::absolute(file).string()}, {"unreadable", faults.size()}})
                 : write_path(file.string());
  }
  if (!faults.empty())
    throw StorageError(fmt::format("the report has {} of {} experiments: the others cannot be read",
                                   documents.size() - faults.size(), documents.size()));
}

}  // namespace

void add_report(Command& program) {
  const auto options = std::make_shared<ReportOptions>();
  Command command = program.add_command("report", "Make a page about experiments, for a browser");
  command.option("experiments", &options->experiments, "Their directories, names or URIs, or training runs'")
      .required();
  command.option("-o,--output", &options->output, "The file; - for standard output [<experiment>.html]");
  command.option("--title", &options->title, "Of the page [the names of the experiments]");
  command.flag("--json", &options->json, "Say the file's path as a JSON document");
  command.footer(
      "The page is one file, which needs no network: learning curves, who descended\n"
      "from whom, schedules, hyper-parameters, failures, checkpoints, all trials.\n"
      "Several experiments are compared. One that cannot be read is named on the\n"
      "page and on standard error; the exit code is then 1.");
  command.on_call([options] { run(*options); });
}

}  // namespace cadre::cli
