#include "loggers/amendments.h"

#include <algorithm>
#include <utility>

#include "base/json.h"

namespace cadre::loggers {
namespace {

void set(Dict& row, const std::string& key, const Value& value) {
  const auto found = std::ranges::find(row, key, &Dict::value_type::first);
  found == row.end() ? static_cast<void>(row.emplace_back(key, value)) : static_cast<void>(found->second = value);
}

}  // namespace

Dict amended(Dict row, const Dict& more) {
  for (const auto& [key, value] : more) {
    const Value* const own = find_entry(row, key);
    if (own == nullptr || !value.is_dict()) {
      set(row, key, value);
    } else if (own->is_dict()) {
      set(row, key, amended(own->dict(), value.dict()));
    } else {
      for (const auto& [name, entry] : value.dict()) set(row, key + "/" + name, entry);
    }
  }
  return row;
}

std::string amended_lines(std::string_view lines, const Amendments& amendments) {
  std::string text;
  std::size_t begin = 0;
  std::size_t next = 0;  // the number of the line at `begin`
  for (const auto& [number, more] : amendments) {
    const std::size_t unchanged = begin;
    for (; next < number && begin < lines.size(); ++next)
      begin = std::min(lines.find('\n', begin), lines.size() - 1) + 1;
    text += lines.substr(unchanged, begin - unchanged);
    if (begin == lines.size()) break;
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    base::append_json(text,
                      amended(base::parse_json(lines.substr(begin, end - begin), "a line of results").dict(), more));
    text += '\n';
    begin = std::min(end + 1, lines.size());
    ++next;
  }
  return text.append(lines.substr(begin));
}

}  // namespace cadre::loggers
