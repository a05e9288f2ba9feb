#include "base/json.h"

#include <rapidjson/error/en.h>
#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/utf8.h"
#include "base/value_limits.h"

namespace cadre::base {
namespace {

constexpr std::string_view kReferenceKey = "$reference";
constexpr const char* kTooDeep = "nested deeper than 64";
static_assert(max_value_depth == 64);

void append_integer(std::string& out, std::int64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

// Decodes the UTF-8 sequence at text[i] and moves i past it; decodes a byte that starts no well-formed sequence as
// Latin-1.
char32_t next_code_point(std::string_view text, std::size_t& i) {
  const std::size_t length = std::max<std::size_t>(utf8_sequence_length(text.substr(i)), 1);
  const char32_t code = utf8_code_point(text.substr(i, length));
  i += length;
  return code;
}

void append_escape(std::string& out, unsigned unit) {
  constexpr char hex[] = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += hex[unit >> shift & 15u];
}

// Returns the number of leading characters that need no escape, which is nearly all.
std::size_t plain_length(std::string_view text) {
  const auto other = std::ranges::find_if(text, [](char c) { return c < 0x20 || c >= 0x7f || c == '"' || c == '\\'; });
  return static_cast<std::size_t>(other - text.begin());
}

void append_text(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t plain = plain_length(text.substr(i));
    out += text.substr(i, plain);
    if ((i += plain) == text.size()) break;
    const char c = text[i];
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (c == '\n' || c == '\t' || c == '\r' || c == '\b' || c == '\f') {
      (out += '\\') += c == '\n' ? 'n' : c == '\t' ? 't' : c == '\r' ? 'r' : c == '\b' ? 'b' : 'f';
    } else {
      const char32_t code = next_code_point(text, i);
      if (code >= 0x10000) {
        append_escape(out, 0xd800u + static_cast<unsigned>((code - 0x10000) >> 10));
        append_escape(out, 0xdc00u + static_cast<unsigned>((code - 0x10000) & 0x3ff));
      } else {
        append_escape(out, static_cast<unsigned>(code));
      }
      continue;
    }
    ++i;
  }
  out += '"';
}

void append_double(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value > 0 ? "Infinity" : "-Infinity";
  } else {
    append_python_float(out, value);
  }
}

// A writer for both layouts: one line, or indented by two spaces with sorted keys.
class Writer {
 public:
  Writer(std::string& out, bool pretty) : out_(out), pretty_(pretty) {}

  void write(const Value& value) {
    std::visit([this](const auto& content) { write_content(content); }, value.data());
  }

  void write(const Dict& entries) {
    open('{');
    if (pretty_) {
      write_sorted(entries);
    } else {
      for (const auto& entry : entries) write(entry);
    }
    close('}');
  }

 private:
  void write_sorted(const Dict& entries) {
    std::vector<const Dict::value_type*> order;
    for (const auto& entry : entries) order.push_back(&entry);
    std::ranges::stable_sort(order, {}, [](const auto* entry) { return std::string_view(entry->first); });
    for (const auto* entry : order) write(*entry);
  }

  void write(const Dict::value_type& entry) {
    separate();
    append_text(out_, entry.first);
    out_ += ": ";
    write(entry.second);
  }

  void write_content(std::monostate) { out_ += "null"; }
  void write_content(bool value) { out_ += value ? "true" : "false"; }
  void write_content(std::int64_t value) { append_integer(out_, value); }
  void write_content(double value) { append_double(out_, value); }
  void write_content(const std::string& text) { append_text(out_, text); }
  void write_content(const std::shared_ptr<const Dict>& entries) { write(*entries); }
  void write_content(const Reference& reference) {
    write(Dict{{std::string(kReferenceKey), list(reference.kind, reference.id)}});
  }
  void write_content(const std::shared_ptr<const List>& items) {
    open('[');
    for (const Value& item : *items) {
      separate();
      write(item);
    }
    close(']');
  }

  void open(char bracket) {
    out_ += bracket;
    first_ = true;
    ++depth_;
  }
  void separate() {
    if (!first_) out_ += pretty_ ? "," : ", ";
    if (pretty_) out_.append("\n").append(2 * depth_, ' ');
    first_ = false;
  }
  void close(char bracket) {
    --depth_;
    if (pretty_ && !first_) out_.append("\n").append(2 * depth_, ' ');
    out_ += bracket;
    first_ = false;
  }

  std::string& out_;
  bool pretty_;
  bool first_ = true;
  std::size_t depth_ = 0;
};

// Builds a Value from RapidJSON's events. A handler returns false to stop the reader; `complaint` is then the reason.
class Builder {
 public:
  bool Null() { return add(Value()); }
  bool Bool(bool value) { return add(value); }
  bool Double(double value) { return add(value); }  // NaN and the infinities
  bool RawNumber(const char* text, rapidjson::SizeType size, bool) { return add_number({text, size}); }
  bool Int(int) { return unexpected(); }
  bool Uint(unsigned) { return unexpected(); }
  bool Int64(std::int64_t) { return unexpected(); }
  bool Uint64(std::uint64_t) { return unexpected(); }
  bool String(const char* text, rapidjson::SizeType size, bool) {
    return check_text({text, size}) && add(std::string(text, size));
  }
  bool StartObject() { return open(Frame{Dict{}, {}, {}}); }
  bool StartArray() { return open(Frame{{}, List{}, {}}); }
  bool Key(const char* text, rapidjson::SizeType size, bool) {
    frames_.back().key.assign(text, size);
    return check_text({text, size});
  }
  bool EndObject(rapidjson::SizeType) {
    Dict entries = std::move(*frames_.back().entries);
    frames_.pop_back();
    if (is_reference(entries)) {
      const List& names = entries[0].second.items();
      return add(Reference{names[0].get<std::string>(), names[1].get<std::string>()});
    }
    return add(std::move(entries));
  }
  bool EndArray(rapidjson::SizeType) {
    List items = std::move(*frames_.back().items);
    frames_.pop_back();
    return add(std::move(items));
  }

  Value result;
  const char* complaint = nullptr;

 private:
  struct Frame {
    std::optional<Dict> entries;
    std::optional<List> items;
    std::string key;
  };

  bool open(Frame frame) {
    if (frames_.size() == max_value_depth) return refuse(kTooDeep);
    frames_.push_back(std::move(frame));
    return true;
  }
  bool add(Value value) {
    if (frames_.empty()) {
      result = std::move(value);
    } else if (Frame& frame = frames_.back(); frame.items) {
      frame.items->push_back(std::move(value));
    } else {
      frame.entries->emplace_back(std::move(frame.key), std::move(value));
    }
    return true;
  }
  bool add_number(std::string_view text) {
    const char* const begin = text.data();
    const char* const end = begin + text.size();
    if (text.find_first_of(".eE") == text.npos && text.find_first_of("NI") == text.npos) {
      std::int64_t integer = 0;
      if (std::from_chars(begin, end, integer).ec != std::errc()) return refuse("an integer does not fit 64 bits");
      return add(integer);
    }
    double number = 0;
    const bool fits = std::from_chars(begin, end, number).ec == std::errc();  // reads NaN and Infinity too
    return fits ? add(number) : refuse("a number is too large or too small for a double");
  }
  static bool is_reference(const Dict& entries) {
    if (entries.size() != 1 || entries[0].first != kReferenceKey || !entries[0].second.is_list()) return false;
    const List& names = entries[0].second.items();
    return names.size() == 2 && names[0].is_string() && names[1].is_string();
  }
  // RapidJSON accepts a lone low surrogate.
  bool check_text(std::string_view text) { return is_utf8(text) || refuse("text is no UTF-8"); }
  bool unexpected() { return refuse("a number that was not given as text"); }
  bool refuse(const char* why) {
    complaint = why;
    return false;
  }

  std::vector<Frame> frames_;
};

}  // namespace

void append_python_float(std::string& out, double value) {
  if (std::isnan(value) || std::isinf(value)) {
    out += std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
    return;
  }
  // As Python's repr() does.
  const bool is_fixed = value == 0 || (std::abs(value) >= 1e-4 && std::abs(value) < 1e16);
  char text[40];
  const char* end = std::to_chars(text, text + sizeof text, value,
                                  is_fixed ? std::chars_format::fixed : std::chars_format::scientific)
                        .ptr;
  const std::string_view digits(text, static_cast<std::size_t>(end - text));
  out += digits;
  if (is_fixed && digits.find('.') == digits.npos) out += ".0";
}

void append_json(std::string& out, const Value& value) { Writer(out, false).write(value); }

void append_json(std::string& out, const Dict& entries) { Writer(out, false).write(entries); }

std::string to_json(const Dict& entries) {
  std::string out;
  append_json(out, entries);
  return out;
}

std::string to_pretty_json(const Dict& entries) {
  std::string out;
  Writer(out, true).write(entries);
  return out;
}

Value parse_json(std::string_view text, std::string_view source) {
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::Reader reader;
  Builder builder;
  constexpr unsigned flags =
      rapidjson::kParseNanAndInfFlag | rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseIterativeFlag;
  const rapidjson::ParseResult parsed = reader.Parse<flags>(stream, builder);
  if (parsed.IsError()) {
    throw StorageError(std::string(source) + ", offset " + std::to_string(parsed.Offset()) + ": " +
                       (builder.complaint ? builder.complaint : rapidjson::GetParseError_En(parsed.Code())));
  }
  return std::move(builder.result);
}

}  // namespace cadre::base

namespace cadre {

std::string to_json(const Value& value) {
  std::string out;
  base::append_json(out, value);
  return out;
}

}  // namespace cadre
