#include "report/page.h"

#include <algorithm>
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
  } else if (const std::string_view licence = named(line, kLicence, " -->"); !licence.empty()) {
    element("<!--\n", licence, "-->\n");
  } else if (line == kDocuments) {
    append_documents(page, documents);
  } else if (const std::size_t at = line.find(kTitle); at != std::string_view::npos) {
    page += line.substr(0, at);
    page += escaped(title);
    page += line.substr(at + kTitle.size());
    page += '\n';
  } else {
    page += line;
    page += '\n';
  }
}

}  // namespace

std::string page_of(const std::vector<Value>& documents, const std::string& title, std::span<const PageFile> files) {
  std::string page;
  std::string_view rest = text_of(files, "index.html");
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size() - 1);
    append_line(page, rest.substr(0, end), documents, title, files);
    rest.remove_prefix(end + 1);
  }
  return page;
}

}  // namespace cadre::report
