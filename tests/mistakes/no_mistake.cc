// Correct code that resembles the mistakes in this folder.
#include <cadre/tune.h>

using namespace cadre;

// ---- Structs

struct Nested {
  int width;
  std::string activation;
};
struct Everything {
  bool flag;
  int integer;
  std::uint8_t small;
  float single_precision;
  double number;
  std::string text;
  std::vector<double> numbers;
  std::vector<std::string> texts;
  List list;
  Dict dict;
  Value value;
  Reference reference;
  Nested nested;
  std::vector<std::vector<int>> table;
  std::int64_t last = 3;
};
static_assert(cadre::detail::PlainStruct<Everything>);
static_assert(cadre::detail::count_members<Everything>() == 15);

struct OnlyText {
  std::string text;
};
struct StructFirst {
  Nested nested;
  double number;
};
static_assert(cadre::detail::PlainStruct<OnlyText> && cadre::detail::PlainStruct<StructFirst>);

struct WithArray {
  double number;
  int array[3];
};
struct WithReference {
  double number;
  double& reference;
};
static_assert(!cadre::detail::PlainStruct<WithArray> && !cadre::detail::PlainStruct<WithReference>);

void train_everything(const Everything&) {}
const tune::Trainable trainable = tune::trainable<train_everything>();

// ---- Values

const std::pair<std::string, Value> entry{"pair", {{"nested", 1}}};
const Config config{{"number", 1},
                    {"dict", {{"text", "a"}, {"deeper", {{"deepest", "b"}}}}},
                    {"list", list(1, 2)},
                    {"in braces", {5}},
                    {"null", {}},
                    entry,
                    std::pair{"a pair of other types", 1},
                    std::make_pair(std::string("made"), Value(2))};
const Value value{{"a", 1}};
const Dict dict{{"a", 1}, {"b", {{"c", 1}}}};
const std::vector<Config> points{{{"lr", 0.1}}, {{"lr", 0.2}, {"width", 3}}};

void report_all() {
  tune::report({});
  tune::report({{"loss", 1.0F}, {"good", true}});
  tune::report({{"loss", 1}}, [](const std::filesystem::path&) {});
  tune::report({{"loss", 1}}, [](const auto& directory) { static_cast<void>(directory); });
  tune::report({{"loss", 1}}, Checkpoint::from_directory("saved"));
}

// ---- Search spaces

const tune::Mutations mutations{{"values", {0.1, 0.2}},
                                {"domain in braces", {tune::uniform(0, 1)}},
                                {"nested", {{"width", tune::randint(1, 2)}, {"deeper", {{"lr", {1, 2}}}}}},
                                {"choice", tune::choice({1, 2})},
                                {"texts", {"a", "b"}},
                                {"dicts", {{{"a", 1}}, {{"a", 2}}}}};
const tune::Space space{{"domain", tune::uniform(0, 1)},
                        {"grid", tune::grid_search({1, 2})},
                        {"nested", {{"width", 1}, {"depth", tune::choice({1, 2})}}},
                        {"text", "a"},
                        {"list", tune::list(tune::uniform(0, 1), 2)},
                        {"conditional", tune::choice({tune::uniform(0, 1), 3})},
                        {"constant", 5},
                        {"dict", Value{{"a", 1}}}};
const tune::SpaceEntry made_from_a_struct(tune::Uniform{0, 1});

// ---- Options

const tune::RunConfig thresholds{.stop = {{"accuracy", 0.96}, {"iteration", 50}, {"loss", tune::at_most(1)}}};
const tune::RunConfig stopper{.stop = tune::MaximumIterationStopper{5}};
