#include "dashboard/site.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <future>
#include <memory>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/percent_encoding.h"
#include "cadre/error.h"
#include "dashboard/access.h"
#include "report/page.h"
#include "report/script_json.h"

namespace cadre::dashboard {
namespace {

constexpr char kHtml[] = "text/html; charset=utf-8";
constexpr char kTitle[] = "cadre dashboard";
constexpr std::string_view kListPage = "list";
constexpr std::string_view kExperimentPage = "experiment";
constexpr std::string_view kControlName = "control";  // of the lines of index.html with which pages control
constexpr std::string_view kControlPath = "/control";
constexpr std::string_view kControlScript = "scripts/control.js";

constexpr char kPolicy[] = "Content-Security-Policy";

http::Response response(int status, const char* type, std::string body) {
  return {.status = status, .type = type, .body = std::make_shared<const std::string>(std::move(body))};
}

// A page that says why there is no other. `text`: HTML of this program's own.
http::Response message(int status, std::string_view title, std::string_view text) {
  http::Response made = response(
      status, kHtml,
      fmt::format("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
                  "content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">"
                  "<title>{0}</title><style>body {{ max-width: 38em; margin: 4em auto; padding: 0 1em; font: 16px/1.5 "
                  "system-ui, sans-serif }} code {{ font-family: ui-monospace, monospace }}</style></head>"
                  "<body><h1>{0}</h1>{1}</body></html>\n",
                  title, text));
  made.headers = {{kPolicy, "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"}};
  return made;
}

// The answer to a request that changes something.
http::Response answer(int status, const char* key, const std::string& text) {
  return response(status, "application/json", report::to_script_json(Dict{{key, text}}) + "\n");
}

http::Response failure(int status, const std::string& reason) { return answer(status, "error", reason); }

struct Reason {
  const char* title;
  const char* text;
};

Reason reason_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::foreign_host:
      return {
          "Not by this name",
          "The dashboard answers only as 127.0.0.1, localhost and [::1]. To look at it from another machine, make a "
          "tunnel, \"ssh -L 8000:127.0.0.1:PORT MACHINE\", and open http://127.0.0.1:8000/... there."};
    case Refusal::foreign_origin:
      return {"Not for this page", "A page of another origin asks. The dashboard answers only its own pages."};
    case Refusal::wrong_token:
      break;
  }
  return {"The address is not complete",
          "Open the whole address that \"cadre dashboard\" has printed: its last part is a secret, which is "
          "missing here or is another one. Each start has a new one, unless --token-file keeps it."};
}

http::Response refused(Refusal refusal, http::Method method) {
  const auto [title, text] = reason_of(refusal);
  return method == http::Method::post ? failure(403, text) : message(403, title, fmt::format("<p>{}</p>", text));
}

http::Response only_to_look(const char* methods) {
  http::Response made = message(405, "Only to look at",
                                fmt::format("<p>The dashboard changes nothing here: it answers {}.</p>", methods));
  made.headers.emplace_back("Allow", methods);
  return made;
}

// Waits for the outcome of a request to an experiment.
class WaitingAnswer : public http::PendingResponse {
 public:
  explicit WaitingAnswer(std::future<ControlQueue::Outcome> outcome) : outcome_(std::move(outcome)) {}

  std::optional<http::Response> next() override {
    if (outcome_.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return std::nullopt;
    const auto [result, text] = outcome_.get();
    switch (result) {
      case ControlQueue::Result::done:
        return answer(200, "message", text);
      case ControlQueue::Result::refused:
        return failure(409, text);
      case ControlQueue::Result::unavailable:
        break;
    }
    return failure(503, text);
  }

 private:
  std::future<ControlQueue::Outcome> outcome_;
};

// Returns the values of a parameter, in order.
std::vector<std::string> parameters(std::string_view query, std::string_view name) {
  std::vector<std::string> values;
  while (!query.empty()) {
    const std::string_view one = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(one.size() + 1, query.size()));
    const std::size_t at = one.find('=');
    if (at != std::string_view::npos && one.substr(0, at) == name)
      values.push_back(base::percent_decoded(one.substr(at + 1)));
  }
  return values;
}

// Sends documents as they grow; their experiments are watched meanwhile. Before the first search for experiments it
// waits for what is not there yet.
class Following : public http::EventSource {
 public:
  struct Followed {
    std::string id = {};
    std::shared_ptr<LiveDocument> document = {};  // nullptr: there is no such experiment, or not yet
    std::uint64_t version = 0;                    // that the client has
  };

  Following(Board& board, std::vector<Followed> followed) : board_(board), followed_(std::move(followed)) {
    for (const Followed& one : followed_) {
      if (one.document) watch(*one.document);
    }
    is_gone_.resize(followed_.size());
  }
  ~Following() override {
    for (const Followed& one : followed_) {
      if (one.document) one.document->unwatch();
    }
  }

  std::string next() override {
    for (std::size_t i = 0; i < followed_.size(); ++i) {
      std::string text = news_of(i);
      if (!text.empty()) return followed_.size() == 1 ? text : fmt::format("event: of\ndata: {}\n\n{}", i, text);
    }
    return {};
  }

 private:
  std::string news_of(std::size_t i) {
    Followed& one = followed_[i];
    std::shared_ptr<LiveDocument> present = board_.document(one.id);
    if (!present && !board_.has_searched()) return {};
    if (!is_gone_[i] && (one.document ? present != one.document : !present)) {
      is_gone_[i] = true;
      return "event: gone\ndata: 1\n\n";
    }
    if (!present) return {};
    if (present != one.document) come_back(i, std::move(present));
    LiveDocument::Sent sent = one.document->since(one.version);
    one.version = sent.version;
    return std::move(sent.text);
  }

  void come_back(std::size_t i, std::shared_ptr<LiveDocument> document) {
    Followed& one = followed_[i];
    if (one.document) one.document->unwatch();
    watch(*document);
    one.document = std::move(document);
    one.version = 0;
    is_gone_[i] = false;
  }

  void watch(LiveDocument& document) {
    document.watch();
    board_.want(document);
  }

  Board& board_;
  std::vector<Followed> followed_;
  std::vector<bool> is_gone_ = {};
};

bool ends_with_one_of(std::string_view path, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return path.ends_with(end); });
}

}  // namespace

http::Headers common_headers() {
  return {{kPolicy,
           "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
           "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
          {"X-Content-Type-Options", "nosniff"},
          {"X-Frame-Options", "DENY"},
          {"Referrer-Policy", "no-referrer"},
          {"Cross-Origin-Opener-Policy", "same-origin"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Cache-Control", "no-store"}};
}

Site::Site(std::string token, Board& board, ControlQueue* controls, std::span<const report::PageFile> files)
    : token_(std::move(token)), board_(board), controls_(controls), files_(files) {}

http::Response Site::handle(const http::Request& request) {
  if (const std::optional<Refusal> refusal = refusal_of(request, token_)) return refused(*refusal, request.method);
  const std::string_view target = after_token(request.target);
  const std::size_t end = target.find_first_of("?#");
  const std::string_view path = target.substr(0, end);
  const std::string_view query = end == std::string_view::npos ? std::string_view() : target.substr(end + 1);
  const bool is_control = controls_ != nullptr && path == kControlPath;
  // The methods that change something are told apart here, and nowhere else.
  if (request.method == http::Method::post && is_control) return control(request, query);
  if (request.method == http::Method::post || request.method == http::Method::other || is_control)
    return only_to_look(is_control ? "POST" : "GET, HEAD");
  return path == "/events" ? events(query) : page(path, query);
}

http::Response Site::control(const http::Request& request, std::string_view query) {
  if (!is_from_own_page(request)) return failure(403, reason_of(Refusal::foreign_origin).text);
  if (!is_json(request)) return failure(415, "The request is no JSON: send it with the Content-Type application/json.");
  const std::vector<std::string> ids = parameters(query, "id");
  const std::string location = ids.size() == 1 ? board_.location(ids.front()) : "";
  if (location.empty() && !board_.has_searched())
    return failure(503, "The dashboard has just begun to search for experiments: try again.");
  if (location.empty()) return failure(404, "There is no such experiment any more. Go back to the list.");
  Value content;
  try {
    content = base::parse_json(request.body, "the request");
  } catch (const StorageError& error) {
    return failure(400, error.what());
  }
  if (!content.is_dict()) return failure(400, "The request is no JSON object, such as {\"do\": \"pause\"}.");
  auto outcome = controls_->add(location, content.dict());
  if (!outcome)
    return failure(503, fmt::format("{} requests wait for an answer already: try again later.", ControlQueue::kMost));
  http::Response made;
  made.pending = std::make_unique<WaitingAnswer>(*std::move(outcome));
  return made;
}

http::Response Site::events(std::string_view query) {
  std::vector<std::string> ids = parameters(query, "id");
  if (ids.empty()) ids.emplace_back();  // the list
  if (!may_be_shown(ids)) return message(404, "No such experiment", "<p>It has been removed, or is elsewhere now.</p>");
  const std::vector<std::string> known = parameters(query, "after");
  std::vector<Following::Followed> followed;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::shared_ptr<LiveDocument> document = board_.document(ids[i]);
    const std::uint64_t version = document && i < known.size() ? document->version_of(known[i]) : 0;
    followed.push_back({std::move(ids[i]), std::move(document), version});
  }
  http::Response made = response(200, "text/event-stream", "");
  made.body.reset();
  made.events = std::make_unique<Following>(board_, std::move(followed));
  return made;
}

bool Site::may_be_shown(const std::vector<std::string>& ids) const {
  if (std::ranges::any_of(ids, [this](const std::string& id) { return board_.document(id) != nullptr; })) return true;
  return !ids.empty() && !board_.has_searched();
}

http::Response Site::page(std::string_view path, std::string_view query) {
  if (path.empty()) {
    http::Response made = message(308, "The list", "<p>The list of experiments has a slash at its end.</p>");
    made.headers.emplace_back("Location", "/" + token_ + "/");
    return made;
  }
  const std::string_view name = path.substr(1);
  const bool is_experiment = name == "experiment";
  std::vector<std::string> ids = parameters(query, "id");
  std::erase(ids, "");  // the list has this one
  if (is_experiment && !may_be_shown(ids))
    return message(404, "No such experiment",
                   "<p>It has been removed, or is elsewhere now. <a href=\"./\">The list of experiments</a></p>");
  if (name.empty() || is_experiment) {
    const std::array names = {is_experiment ? kExperimentPage : kListPage, kControlName};
    return response(
        200, kHtml,
        report::served_page(std::span(names).first(is_experiment && controls_ != nullptr ? 2 : 1), kTitle, files_));
  }
  if (!ends_with_one_of(name, {".js", ".css"}))
    return message(404, "No such page", "<p><a href=\"./\">The list of experiments</a></p>");
  const char* type = name.ends_with(".js") ? "text/javascript; charset=utf-8" : "text/css; charset=utf-8";
  const auto found = std::ranges::find(files_, name, &report::PageFile::path);
  if (found == files_.end() || (name == kControlScript && controls_ == nullptr))
    return message(404, "No such file", "<p>The dashboard has no file of this name.</p>");
  return response(200, type, std::string(found->text));
}

}  // namespace cadre::dashboard
