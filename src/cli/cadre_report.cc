// The program `cadre-report`: reports of shell scripts that `cadre tune` runs.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "cadre/report.h"

namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;
constexpr int kStopped = 3;

constexpr const char* kUsage =
    "Reports a result of the script that cadre tune runs:\n"
    "  cadre-report loss=0.25 accuracy=0.9        prints continue or stop\n"
    "  cadre-report --offer loss=0.25             or checkpoint: fill the directory\n"
    "  cadre-report --saved                       $CADRE_CHECKPOINT_OUT, then say so\n"
    "  cadre-report --tell loss=0.25              prints nothing, and does not wait\n"
    "Exit code: 0; 3: stop; 1: Cadre is gone; 2: wrong usage.\n"
    "Outside cadre tune it prints continue.\n";

std::string json_text(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    char escaped[8];
    if (c == '"' || c == '\\') {
      json += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
      json += escaped;
    } else {
      json += c;
    }
  }
  return json + "\"";
}

// Returns a number and the words true and false as they are in JSON, anything else as text.
std::string json_value(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || text.find_first_of(" xX") != text.npos)
    return text == "true" || text == "false" ? text : json_text(text);
  if (number != number) return "NaN";
  if (number - number != 0) return number > 0 ? "Infinity" : "-Infinity";
  const bool is_json = text.front() != '+' && text.front() != '.' && text.back() != '.' && text.substr(0, 2) != "-." &&
                       !(text.size() > 1 && text[text.front() == '-'] == '0' && text[1 + (text.front() == '-')] != '.');
  if (is_json && text.find(".e") == text.npos && text.find(".E") == text.npos) return text;
  char written[32];
  std::snprintf(written, sizeof written, "%.17g", number);
  return written;
}

int show(cadre_answer answer) {
  switch (answer) {
    case CADRE_CONTINUE:
      std::puts("continue");
      return 0;
    case CADRE_CHECKPOINT:
      std::puts("checkpoint");
      return 0;
    case CADRE_STOP:
      std::puts("stop");
      return kStopped;
    case CADRE_ERROR:
      break;
  }
  const bool is_gone = errno == EPIPE || errno == ECONNRESET;
  std::fprintf(stderr, "cadre-report: cannot report: %s\n", is_gone ? "cadre is gone" : std::strerror(errno));
  return kFailed;
}

int refuse(const std::string& why) {
  std::fprintf(stderr, "cadre-report: %s\n%s", why.c_str(), kUsage);
  return kWrongUsage;
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view mode = "--ask";
  std::string json;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "-h" || word == "--help") return std::fputs(kUsage, stdout) < 0 ? kFailed : 0;
    if (word.starts_with("--")) {
      mode = argv[i];
      continue;
    }
    const std::size_t equals = word.find('=');
    if (equals == word.npos || equals == 0) return refuse("\"" + word + "\" is no metric: write name=number");
    json += (json.empty() ? "" : ", ") + json_text(word.substr(0, equals)) + ": " + json_value(word.substr(equals + 1));
  }
  if (mode == "--saved") return json.empty() ? show(cadre_saved()) : refuse("--saved has no metrics");
  if (json.empty()) return refuse("there are no metrics");
  json = "{" + json + "}";
  if (mode == "--ask") return show(cadre_ask(json.c_str()));
  if (mode == "--offer") return show(cadre_offer(json.c_str()));
  if (mode == "--tell") return cadre_tell(json.c_str()) == CADRE_ERROR ? show(CADRE_ERROR) : 0;
  return refuse("there is no option " + std::string(mode));
}
