#include "search/functions.h"

#include <array>
#include <cmath>
#include <numbers>

#include "search/mnist_table.h"

namespace cadre::benchmarks {
namespace {

using std::numbers::pi;
using tune::choice;
using tune::loguniform;
using tune::randint;
using tune::Space;
using tune::uniform;

Space cube(int dimensions, double lower, double upper) {
  Space space;
  for (int i = 0; i < dimensions; ++i) space.emplace_back("x" + std::to_string(i), uniform(lower, upper));
  return space;
}

std::vector<double> coordinates(const Config& config) {
  std::vector<double> x;
  while (const Value* value = config.find("x" + std::to_string(x.size()))) x.push_back(value->get<double>());
  return x;
}

// Source of the first four: Surjanovic and Bingham, "Virtual Library of Simulation Experiments".
double branin(const Config& config) {
  const auto x = config.get<double>("x");
  const auto y = config.get<double>("y");
  const double a = y - 5.1 / (4 * pi * pi) * x * x + 5 / pi * x - 6;
  return a * a + 10 * (1 - 1 / (8 * pi)) * std::cos(x) + 10;
}

double hartmann6(const Config& config) {
  constexpr std::array<double, 4> alpha{1, 1.2, 3, 3.2};
  constexpr double a[4][6] = {
      {10, 3, 17, 3.5, 1.7, 8}, {0.05, 10, 17, 0.1, 8, 14}, {3, 3.5, 1.7, 10, 17, 8}, {17, 8, 0.05, 10, 0.1, 14}};
  constexpr double p[4][6] = {{1312, 1696, 5569, 124, 8283, 5886},
                              {2329, 4135, 8307, 3736, 1004, 9991},
                              {2348, 1451, 3522, 2883, 3047, 6650},
                              {4047, 8828, 8732, 5743, 1091, 381}};
  const std::vector<double> x = coordinates(config);
  double sum = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    double inner = 0;
    for (std::size_t j = 0; j < 6; ++j) inner += a[i][j] * std::pow(x[j] - p[i][j] * 1e-4, 2);
    sum -= alpha[i] * std::exp(-inner);
  }
  return sum;
}

double rosenbrock(const Config& config) {
  const std::vector<double> x = coordinates(config);
  double sum = 0;
  for (std::size_t i = 0; i + 1 < x.size(); ++i)
    sum += 100 * std::pow(x[i + 1] - x[i] * x[i], 2) + std::pow(1 - x[i], 2);
  return sum;
}

double ackley(const Config& config) {
  const std::vector<double> x = coordinates(config);
  const auto n = static_cast<double>(x.size());
  double squares = 0;
  double cosines = 0;
  for (const double one : x) {
    squares += one * one;
    cosines += std::cos(2 * pi * one);
  }
  return -20 * std::exp(-0.2 * std::sqrt(squares / n)) - std::exp(cosines / n) + 20 + std::numbers::e;
}

// Like the tuning of a network: the best is adam with lr 1e-3, beta 0.9, three layers of 128 units, relu.
double network(const Config& config) {
  const Config optimizer(config.at("optimizer"));
  const bool adam = optimizer.get<std::string>("name") == "adam";
  const double best_lr = adam ? -3 : -1;
  double value = adam ? 0 : 0.3;
  value += std::pow(std::log10(optimizer.get<double>("lr")) - best_lr, 2);
  value += adam ? 4 * std::pow(optimizer.get<double>("beta") - 0.9, 2)
                : 4 * std::pow(optimizer.get<double>("momentum") - 0.8, 2);
  value += 0.2 * std::abs(config.get<double>("layers") - 3);
  value += 0.1 * std::pow(std::log2(config.get<double>("width") / 128), 2);
  const auto activation = config.get<std::string>("activation");
  value += activation == "relu" ? 0 : activation == "gelu" ? 0.1 : activation == "tanh" ? 0.4 : 0.8;
  return value;
}

double mnist(const Config& config) { return mnist_errors(mnist_row(config)).back(); }

}  // namespace

const std::vector<Function>& functions() {
  static const std::vector<Function> all{
      {"branin", {{"x", uniform(-5, 10)}, {"y", uniform(0, 15)}}, &branin},
      {"hartmann6", cube(6, 0, 1), &hartmann6},
      {"rosenbrock10", cube(10, -5, 10), &rosenbrock},
      {"ackley20", cube(20, -32.768, 32.768), &ackley},
      {"network",
       {{"optimizer", choice({Space{{"name", "adam"}, {"lr", loguniform(1e-5, 1)}, {"beta", uniform(0.5, 1)}},
                              Space{{"name", "sgd"}, {"lr", loguniform(1e-5, 1)}, {"momentum", uniform(0, 1)}}})},
        {"layers", randint(1, 9)},
        {"width", tune::lograndint(8, 1025)},
        {"activation", choice({"relu", "gelu", "tanh", "sigmoid"})}},
       &network},
      {"mnist", mnist_space(), &mnist}};
  return all;
}

}  // namespace cadre::benchmarks
