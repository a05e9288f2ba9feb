#include "tune/searchers/variant_generator.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/random.h"
#include "tune/domain.h"

namespace cadre::tune {
namespace {

Dict draw(const Space& space, const std::string& prefix, base::RandomStream& random, Dict& sampled);

struct Draw {
  const std::string& path;
  base::RandomStream& random;
  Dict& sampled;

  Value operator()(const Domain& domain) const {
    Value value = sample(domain, random);
    sampled.emplace_back(path, value);
    return value;
  }
  Value operator()(const Value& constant) const { return constant; }
  Value operator()(const std::shared_ptr<const Space>& nested) const {
    return draw(*nested, path + "/", random, sampled);
  }
};

Dict draw(const Space& space, const std::string& prefix, base::RandomStream& random, Dict& sampled) {
  Dict entries;
  for (const auto& [key, entry] : space) {
    const std::string path = prefix + key;
    entries.emplace_back(key, std::visit(Draw{path, random, sampled}, entry.data()));
  }
  return entries;
}

// Python's str() of the value.
std::string plain_text(const Value& value) {
  if (value.is_null()) return "None";
  if (value.is_bool()) return value.get<bool>() ? "True" : "False";
  if (value.is_string()) return value.get<std::string>();
  return to_json(value);
}

// Every run of other characters becomes one '_', and none stays at the ends.
std::string clean(std::string_view text) {
  std::string cleaned;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
    if (plain || (!cleaned.empty() && cleaned.back() != '_')) cleaned += plain ? c : '_';
  }
  const auto begin = cleaned.find_first_not_of('_');
  if (begin == cleaned.npos) return {};
  return cleaned.substr(begin, cleaned.find_last_not_of('_') - begin + 1);
}

}  // namespace

Variant generate_variant(const Space& space, std::uint64_t seed, std::uint32_t trial) {
  base::RandomStream random(seed, trial, base::Purpose::search_space);
  Variant variant;
  variant.config = Config(draw(space, "", random, variant.sampled));
  return variant;
}

std::string format_variables(const Dict& sampled) {
  Dict sorted = sampled;
  // By path, part by part: a '/' comes before every other character.
  std::ranges::sort(sorted, {}, [](const auto& entry) {
    std::string parts = entry.first;
    std::ranges::replace(parts, '/', '\0');
    return parts;
  });
  std::string text;
  for (const auto& [path, value] : sorted) {
    const std::string key = path.substr(path.rfind('/') + 1);
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", clean(key),
                        value.is_double() ? fmt::format("{:.4f}", value.get<double>()) : clean(plain_text(value)));
  }
  return text;
}

}  // namespace cadre::tune
