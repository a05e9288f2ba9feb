#include "object_storage/http.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "object_storage/faults.h"

namespace cadre::storage {
namespace {

constexpr int kAttempts = 3;
constexpr auto kFirstPause = std::chrono::milliseconds(100);  // multiplied by 4 after each attempt
constexpr long kConnectSeconds = 3;
constexpr long kStalledSeconds = 5;  // without a transferred byte
constexpr std::size_t kMostAnswer = std::size_t{64} << 20;

class Transfer {
 public:
  explicit Transfer(const HttpRequest& request) {
    static std::once_flag once;
    std::call_once(once, [] { ::curl_global_init(CURL_GLOBAL_DEFAULT); });
    curl_.reset(::curl_easy_init());
    if (curl_ == nullptr) throw StorageFault(StorageFault::Kind::passing, "libcurl has no memory");
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, kStalledSeconds);
    set(CURLOPT_EXPECT_100_TIMEOUT_MS, 1L);  // no "Expect" header: libcurl 7.88 would sign it without sending it
    set(CURLOPT_ERRORBUFFER, error_);
    set(CURLOPT_WRITEFUNCTION, &Transfer::take_body);
    set(CURLOPT_WRITEDATA, &answer_);
    set(CURLOPT_HEADERFUNCTION, &Transfer::take_header);
    set(CURLOPT_HEADERDATA, &answer_);
    if (request.method == "HEAD") {
      set(CURLOPT_NOBODY, 1L);
    } else if (request.method != "GET") {
      set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    }
    if (request.signature) {
      set(CURLOPT_AWS_SIGV4, fmt::format("aws:amz:{}:s3", request.signature->region).c_str());
      set(CURLOPT_USERPWD, (request.signature->access_key + ":" + request.signature->secret_key).c_str());
    }
    for (const std::string& line : request.headers) add_header(line);
    set(CURLOPT_HTTPHEADER, headers_.get());
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  void give(HttpBody body) {
    body_.next_piece = std::move(body.next_piece);
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_READFUNCTION, &Transfer::give_body);
    set(CURLOPT_READDATA, &body_);
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(body.size));
  }

  HttpAnswer perform() {
    const CURLcode code = ::curl_easy_perform(curl_.get());
    ::curl_easy_getinfo(curl_.get(), CURLINFO_RESPONSE_CODE, &answer_.status);
    if (body_.error) std::rethrow_exception(body_.error);
    if (code != CURLE_OK) {
      answer_.fault = fmt::format("curlCode {}: {}", static_cast<int>(code),
                                  error_[0] != '\0' ? error_ : ::curl_easy_strerror(code));
      answer_.status = 0;
      answer_.has_timed_out = code == CURLE_OPERATION_TIMEDOUT;
    }
    return std::move(answer_);
  }

 private:
  struct Body {
    std::function<std::string_view()> next_piece = {};
    std::string_view piece = {};
    std::exception_ptr error = {};
  };

  template <class Value>
  void set(CURLoption option, Value value) {
    if (const CURLcode code = ::curl_easy_setopt(curl_.get(), option, value); code != CURLE_OK)
      throw StorageFault(StorageFault::Kind::lasting,
                         fmt::format("this libcurl, {}, cannot do what a request to a storage needs: {}",
                                     ::curl_version(), ::curl_easy_strerror(code)));
  }
  void add_header(const std::string& line) {
    ::curl_slist* const longer = ::curl_slist_append(headers_.get(), line.c_str());
    if (longer == nullptr) throw StorageFault(StorageFault::Kind::passing, "libcurl has no memory");
    static_cast<void>(headers_.release());
    headers_.reset(longer);
  }

  static std::size_t take_body(char* data, std::size_t size, std::size_t count, void* to) {
    std::string& body = static_cast<HttpAnswer*>(to)->body;
    if (body.size() + size * count > kMostAnswer) return 0;
    body.append(data, size * count);
    return size * count;
  }
  static std::size_t take_header(char* data, std::size_t size, std::size_t count, void* to) {
    const std::string_view line(data, size * count);
    const std::size_t colon = line.find(':');
    const std::size_t begin = line.find_first_not_of(": ", colon);
    if (colon == line.npos || begin == line.npos) return line.size();
    std::string name(line.substr(0, colon));
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const std::size_t end = line.find_last_not_of("\r\n ") + 1;
    static_cast<HttpAnswer*>(to)->headers.emplace_back(std::move(name),
                                                       begin < end ? line.substr(begin, end - begin) : "");
    return line.size();
  }
  static std::size_t give_body(char* data, std::size_t size, std::size_t count, void* from) {
    Body& body = *static_cast<Body*>(from);
    try {
      if (body.piece.empty()) body.piece = body.next_piece();
    } catch (...) {
      body.error = std::current_exception();
      return CURL_READFUNC_ABORT;
    }
    const std::size_t given = std::min(size * count, body.piece.size());
    std::memcpy(data, body.piece.data(), given);
    body.piece.remove_prefix(given);
    return given;
  }

  struct Cleanup {
    void operator()(CURL* curl) const { ::curl_easy_cleanup(curl); }
    void operator()(::curl_slist* list) const { ::curl_slist_free_all(list); }
  };
  std::unique_ptr<CURL, Cleanup> curl_ = {};
  std::unique_ptr<::curl_slist, Cleanup> headers_ = {};
  HttpAnswer answer_ = {};
  Body body_ = {};
  char error_[CURL_ERROR_SIZE] = {};
};

}  // namespace

std::string HttpAnswer::header(std::string_view name) const {
  const auto found = std::ranges::find(headers, name, &std::pair<std::string, std::string>::first);
  return found == headers.end() ? "" : found->second;
}

HttpAnswer send(const HttpRequest& request, HttpBody body) {
  Transfer transfer(request);
  if (body.next_piece) transfer.give(std::move(body));
  return transfer.perform();
}

bool may_pass(const HttpAnswer& answer) {
  constexpr long kNotImplemented = 501;
  return (answer.status == 0 && !answer.has_timed_out) || answer.status == 408 || answer.status == 429 ||
         (answer.status >= 500 && answer.status != kNotImplemented);
}

HttpAnswer send_with_attempts(const std::function<HttpAnswer()>& attempt,
                              const std::function<bool(const HttpAnswer&)>& may_pass) {
  auto pause = kFirstPause;
  for (int i = 1;; ++i, pause *= 4) {
    HttpAnswer answer = attempt();
    if (!may_pass(answer) || i == kAttempts) return answer;
    std::this_thread::sleep_for(pause);
  }
}

void throw_fault(const HttpAnswer& answer, std::string_view doing, std::string_view what) {
  const std::string reason = without_secrets(
      answer.status == 0 ? answer.fault : fmt::format("HTTP status {} {}", answer.status, answer.body.substr(0, 500)));
  const Diagnosis diagnosis = diagnose(reason, what);
  throw StorageFault(diagnosis.kind, fmt::format("cannot {} {}: {}{}{}", doing, what, reason,
                                                 diagnosis.advice.empty() ? "" : "; ", diagnosis.advice));
}

}  // namespace cadre::storage
