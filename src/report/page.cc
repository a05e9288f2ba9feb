#include "report/page.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "base/utf8.h"
#include "cadre/error.h"
#include "report/script_json.h"

namespace cadre::report {
namespace {

// Lines of index.html that stand for the content of a file, and texts that stand for others.
constexpr std::string_view kStyle = "<link rel=\"stylesheet\" href=\"";
constexpr std::string_view kScript = "<script src=\"";
constexpr std::string_view kLicence = "<!-- licence ";
constexpr std::string_view kDocuments = "<!-- documents -->";
constexpr std::string_view kTitle = "<!-- title -->";
constexpr std::string_view kFor = " <!-- for ";  // the pages that have a line, at its end
constexpr std::string_view kEnd = " -->";
constexpr std::string_view kReport = "report";

std::string_view text_of(std::span<const PageFile> files, std::string_view path) {
  const auto found = std::ranges::find(files, path, &PageFile::path);
  if (found == files.end()) throw NotFound("the page has no file " + std::string(path));
  return found->text;
}

// Returns what stands between `begin` and `end` at the beginning of a line without its blanks; empty if it is another.
std::string_view named(std::string_view line, std::string_view begin, std::string_view end) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (!line.starts_with(begin)) return {};
  line.remove_prefix(begin.size());
  return line.substr(0, line.find(end));
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : base::to_utf8(text)) {
    if (c == '<' || c == '>' || c == '&') {
      out += c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;";
    } else {
      out += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
    }
  }
  return out;
}

void append_documents(std::string& page, const std::vector<Value>& documents) {
  for (const Value& document : documents)
    page += "<script type=\"application/json\" class=\"document\">" + to_script_json(document) + "</script>\n";
}

bool is_among(std::string_view list, std::span<const std::string_view> names) {
  while (!list.empty()) {
    const std::string_view one = list.substr(0, list.find(' '));
    if (std::ranges::find(names, one) != names.end()) return true;
    list.remove_prefix(std::min(one.size() + 1, list.size()));
  }
  return false;
}

// Calls `use` with each line of index.html that the pages of these names have.
void each_line(std::span<const std::string_view> names, std::span<const PageFile> files,
               const std::function<void(std::string_view)>& use) {
  std::string_view rest = text_of(files, "index.html");
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1);
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (const std::size_t at = line.find(kFor); at != std::string_view::npos) {
      const std::string_view list = line.substr(at + kFor.size());
      if (!is_among(list.substr(0, list.find(kEnd)), names)) continue;
      line = line.substr(0, at);
    }
    use(line);
  }
}

// Appends a line with the title in its place.
void append_text(std::string& page, std::string_view line, const std::string& title) {
  const std::size_t at = line.find(kTitle);
  page += line.substr(0, at);
  if (at != std::string_view::npos) {
    page += escaped(title);
    page += line.substr(at + kTitle.size());
  }
  page += '\n';
}

void append_line(std::string& page, std::string_view line, const std::vector<Value>& documents,
                 const std::string& title, std::span<const PageFile> files) {
  const auto element = [&](const char* begin, std::string_view path, const char* end) {
    page += begin;
    page += text_of(files, path);
    page += end;
  };
  if (const std::string_view style = named(line, kStyle, "\""); !style.empty()) {
    element("<style>\n", style, "</style>\n");
  } else if (const std::string_view script = named(line, kScript, "\""); !script.empty()) {
    element("<script>\n", script, "</script>\n");
  } else if (const std::string_view licence = named(line, kLicence, kEnd); !licence.empty()) {
    element("<!--\n", licence, "-->\n");
  } else if (line == kDocuments) {
    append_documents(page, documents);
  } else {
    append_text(page, line, title);
  }
}

}  // namespace

std::string page_of(const std::vector<Value>& documents, const std::string& title, std::span<const PageFile> files) {
  std::string page;
  each_line({&kReport, 1}, files, [&](std::string_view line) { append_line(page, line, documents, title, files); });
  return page;
}

std::string served_page(std::span<const std::string_view> names, const std::string& title,
                        std::span<const PageFile> files) {
  std::string page;
  each_line(names, files, [&](std::string_view line) { append_text(page, line, title); });
  return page;
}

}  // namespace cadre::report
