#include "search/mnist_table.h"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <map>
#include <string>

#include "cadre/error.h"

namespace cadre::benchmarks {
namespace {

using tune::choice;
using tune::ordinal;
using tune::Space;

constexpr double validation_images = 2000;

struct Table {
  std::map<std::string, std::size_t> rows = {};  // by the text of the configuration
  std::vector<std::vector<double>> errors = {};  // by row
};

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> cells(1);
  for (const char c : line) {
    if (c == ',') {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

Table read_table() {
  std::ifstream file(CADRE_MNIST_TABLE);
  Table table;
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("sgd,") && !line.starts_with("adam,")) continue;  // comments and the names of columns
    const std::vector<std::string> cells = split(line);
    const auto first_error = cells.size() - static_cast<std::size_t>(mnist_epochs);
    std::vector<double> errors;
    for (std::size_t i = first_error; i < cells.size(); ++i) errors.push_back(std::stod(cells[i]) / validation_images);
    table.rows.emplace(fmt::format("{}", fmt::join(cells.begin(), cells.begin() + first_error, ",")),
                       table.rows.size());
    table.errors.push_back(std::move(errors));
  }
  if (table.errors.empty()) throw NotFound("there are no networks in " CADRE_MNIST_TABLE);
  return table;
}

const Table& table() {
  static const Table read = read_table();
  return read;
}

}  // namespace

Space mnist_space() {
  const tune::Domain lr = ordinal({0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3});
  return {{"optimizer", choice({Space{{"name", "sgd"}, {"lr", lr}, {"momentum", ordinal({0, 0.5, 0.9})}},
                                Space{{"name", "adam"}, {"lr", lr}, {"beta1", ordinal({0.5, 0.9})}}})},
          {"batch_size", ordinal({32, 128})},
          {"width", ordinal({16, 32, 64, 128})},
          {"layers", ordinal({1, 2})},
          {"activation", choice({"relu", "tanh"})}};
}

std::size_t mnist_row(const Config& config) {
  const Config optimizer(config.at("optimizer"));
  const auto number = [&](const char* key) {
    return optimizer.contains(key) ? fmt::format("{}", optimizer.get<double>(key)) : "";
  };
  const std::string text =
      fmt::format("{},{},{},{},{},{},{},{}", optimizer.get<std::string>("name"), number("lr"), number("momentum"),
                  number("beta1"), config.get<std::int64_t>("batch_size"), config.get<std::int64_t>("width"),
                  config.get<std::int64_t>("layers"), config.get<std::string>("activation"));
  const auto row = table().rows.find(text);
  if (row == table().rows.end()) throw NotFound("the table has no network " + text);
  return row->second;
}

const std::vector<double>& mnist_errors(std::size_t row) { return table().errors.at(row); }

}  // namespace cadre::benchmarks
