// An XML reader for tests: elements with attributes and text. Checks that documents are well-formed; does not support
// comments, namespaces, declarations and sections.
#pragma once

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"

namespace cadre::test_support {

struct XmlElement {
  std::string name = {};
  std::map<std::string, std::string> attributes = {};
  std::vector<XmlElement> children = {};
  std::string text = {};  // directly in the element

  // Returns all descendants with this name and, if one is given, this class.
  std::vector<XmlElement> all(std::string_view wanted, std::string_view of_class = {}) const {
    std::vector<XmlElement> found;
    for (const XmlElement& child : children) {
      const auto own = child.attributes.find("class");
      if (child.name == wanted && (of_class.empty() || (own != child.attributes.end() && own->second == of_class)))
        found.push_back(child);
      for (XmlElement& below : child.all(wanted, of_class)) found.push_back(std::move(below));
    }
    return found;
  }
};

class XmlReader {
 public:
  static XmlElement read(std::string_view document) {
    if (!base::is_utf8(document)) throw std::runtime_error("XML: no UTF-8");
    XmlReader reader(document);
    reader.skip_space();
    XmlElement root = reader.element();
    reader.skip_space();
    if (!reader.rest_.empty()) reader.fail("something behind the root");
    return root;
  }

 private:
  explicit XmlReader(std::string_view document) : rest_(document) {}

  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("XML: " + what + " before \"" + std::string(rest_.substr(0, 40)) + "\"");
  }
  void skip_space() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n"), rest_.size())); }
  bool take(std::string_view wanted) {
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(wanted.size());
    return true;
  }
  void need(std::string_view wanted) {
    if (!take(wanted)) fail("no \"" + std::string(wanted) + "\"");
  }
  std::string until(std::string_view ends) {
    const std::size_t size = rest_.find_first_of(ends);
    if (size == rest_.npos) fail("no end");
    std::string taken(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return taken;
  }
  std::string name() {
    std::string taken = until(" =/>\n");
    if (taken.empty()) fail("no name");
    return taken;
  }
  std::string plain(const std::string& raw) {
    std::string text;
    for (std::size_t i = 0; i < raw.size(); ++i) {
      const auto byte = static_cast<unsigned char>(raw[i]);
      if ((byte < 0x20 && byte != '\n') || byte == '<') fail("a character that must not be");
      if (raw[i] != '&') {
        text += raw[i];
        continue;
      }
      const std::size_t end = raw.find(';', i);
      static const std::map<std::string, char> entities{{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}};
      const auto entity = entities.find(raw.substr(i + 1, end - i - 1));
      if (end == raw.npos || entity == entities.end()) fail("an unknown entity");
      text += entity->second;
      i = end;
    }
    return text;
  }
  XmlElement element() {
    need("<");
    XmlElement made{.name = name()};
    for (skip_space(); !rest_.starts_with("/") && !rest_.starts_with(">"); skip_space()) {
      const std::string key = name();
      need("=\"");
      if (!made.attributes.emplace(key, plain(until("\""))).second) fail("an attribute twice");
      need("\"");
    }
    if (take("/>")) return made;
    need(">");
    for (;;) {
      made.text += plain(until("<"));
      if (take("</")) break;
      made.children.push_back(element());
    }
    need(made.name);
    need(">");
    return made;
  }

  std::string_view rest_;
};

}  // namespace cadre::test_support
