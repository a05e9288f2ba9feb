// Correct code that resembles the mistakes in this folder.
#include <cadre/data.h>
#include <cadre/train.h>
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
const tune::Trainable trainable = fn<train_everything>;

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

// ---- Functions, also in templates

void train_model(const Config&);
double train_in_group();
Resources resources(const Config&);
double draw();
Config explore(Config, Random&);
bool is_over(const std::string& trial_id, const Metrics& result);
Metrics validate(const Checkpoint&);
data::Batch halve(const data::Batch&, const Config&);
data::Row halve_row(const data::Row&);
bool is_long(const data::Row&);

struct Model {
  static void train(const Config&);
};

const tune::Space space_of_functions{{"alone", fn<draw>},
                                     {"nested", {{"width", fn<draw>}}},
                                     {"choice", tune::choice({fn<draw>, 1})},
                                     {"grid", tune::grid_search({fn<draw>, 1})},
                                     {"list", tune::list(fn<draw>, 1)},
                                     tune::field<&Nested::width>(fn<draw>)};
const tune::RunConfig stop_function{.stop = fn<is_over>};
const tune::Stop any = tune::any_of(fn<is_over>, tune::Stop{{"loss", tune::at_most(1)}});
const std::vector<tune::Trainable> trainables{fn<train_model>, fn<Model::train>};
const std::optional<train::Validator> validator = fn<validate>;

template <auto Function, class Number>
void use_functions(Number cpus) {
  tune::Tuner plain(fn<Function>, {});
  const tune::Trainable fixed = tune::with_resources(fn<train_model>, {.cpus = cpus});
  const tune::Trainable varying = tune::with_parameters(tune::with_resources(fn<Function>, fn<resources>), {{"a", 1}});
  const tune::PopulationBasedTraining pbt{.hyperparam_mutations = {{"lr", fn<draw>}}, .custom_explore_fn = fn<explore>};
  train::Trainer trainer(fn<train_in_group>, {.validation = {.function = fn<validate>}});
  const train::Validator chosen = cpus > 1 ? train::Validator(fn<validate>) : train::Validator();
  train::report({{"loss", 1}}, {.validate = fn<validate>});
  data::range(9).map_batches(fn<halve>, {.batch_size = 3}).map(fn<halve_row>).filter(fn<is_long>).show();
}
template void use_functions<train_model>(double);
