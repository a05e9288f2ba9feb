#include "object_storage/s3_requests.h"

#include <curl/curl.h>
#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "object_storage/faults.h"

namespace cadre::storage {
namespace fs = std::filesystem;
namespace {

constexpr int kAttempts = 3;
constexpr auto kFirstPause = std::chrono::milliseconds(100);  // four times as long after each attempt
constexpr long kConnectSeconds = 3;
constexpr long kStalledSeconds = 5;  // without a byte; not tried again: whoever asks has more patience, or none
constexpr std::size_t kMostAnswer = std::size_t{64} << 20;

constexpr long kOk = 200;
constexpr long kNotFound = 404;
constexpr long kPreconditionFailed = 412;

struct Answer {
  long status = 0;  // of HTTP; 0: there was none
  std::string body = {};
  std::string etag = {};
  std::string fault = {};  // of the transport; empty: none
  bool has_timed_out = false;

  bool may_pass() const { return (status == 0 && !has_timed_out) || status == 429 || status >= 500 || status == 409; }
};

// As S3 wants a key in a URL: all but letters, digits and -._~ and the slashes between names.
std::string encoded(std::string_view key) {
  std::string text;
  for (const char c : key) {
    const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          std::string_view("-._~/").find(c) != std::string_view::npos;
    text += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return text;
}

// One request, with libcurl, which signs it.
class Request {
 public:
  Request(const std::string& url, const S3Bucket& bucket, const S3Credentials& credentials) {
    static std::once_flag once;
    std::call_once(once, [] { ::curl_global_init(CURL_GLOBAL_DEFAULT); });
    curl_.reset(::curl_easy_init());
    if (curl_ == nullptr) throw StorageFault(StorageFault::Kind::passing, "libcurl has no memory");
    set(CURLOPT_URL, url.c_str());
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, kStalledSeconds);
    set(CURLOPT_EXPECT_100_TIMEOUT_MS, 1L);  // without the header, which libcurl 7.88 would sign and not send
    set(CURLOPT_ERRORBUFFER, error_);
    set(CURLOPT_WRITEFUNCTION, &Request::take_body);
    set(CURLOPT_WRITEDATA, &answer_);
    set(CURLOPT_HEADERFUNCTION, &Request::take_header);
    set(CURLOPT_HEADERDATA, &answer_);
    if (!credentials.access_key.empty()) {
      set(CURLOPT_AWS_SIGV4, fmt::format("aws:amz:{}:s3", bucket.region).c_str());
      set(CURLOPT_USERPWD, (credentials.access_key + ":" + credentials.secret_key).c_str());
    }
    if (!credentials.session_token.empty()) add_header("x-amz-security-token: " + credentials.session_token);
    // libcurl signs no contents that it streams; TLS protects them.
    add_header("x-amz-content-sha256: UNSIGNED-PAYLOAD");
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  template <class Value>
  void set(CURLoption option, Value value) {
    if (const CURLcode code = ::curl_easy_setopt(curl_.get(), option, value); code != CURLE_OK)
      throw StorageFault(StorageFault::Kind::lasting,
                         fmt::format("this libcurl, {}, cannot do what a request to S3 needs: {}", ::curl_version(),
                                     ::curl_easy_strerror(code)));
  }
  void add_header(const std::string& line) {
    ::curl_slist* const longer = ::curl_slist_append(headers_.get(), line.c_str());
    if (longer == nullptr) throw StorageFault(StorageFault::Kind::passing, "libcurl has no memory");
    static_cast<void>(headers_.release());
    headers_.reset(longer);
  }
  // `next` gives the pieces of the body.
  void send(std::int64_t size, std::function<std::string_view()> next) {
    body_.next = std::move(next);
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_READFUNCTION, &Request::give_body);
    set(CURLOPT_READDATA, &body_);
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(size));
  }

  Answer perform() {
    set(CURLOPT_HTTPHEADER, headers_.get());
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
    std::function<std::string_view()> next = {};
    std::string_view piece = {};
    std::exception_ptr error = {};
  };

  static std::size_t take_body(char* data, std::size_t size, std::size_t count, void* to) {
    std::string& body = static_cast<Answer*>(to)->body;
    if (body.size() + size * count > kMostAnswer) return 0;
    body.append(data, size * count);
    return size * count;
  }
  static std::size_t take_header(char* data, std::size_t size, std::size_t count, void* to) {
    std::string_view line(data, size * count);
    constexpr std::string_view kName = "etag:";
    if (line.size() > kName.size() && ::strncasecmp(line.data(), kName.data(), kName.size()) == 0) {
      line.remove_prefix(line.find_first_not_of(' ', kName.size()));
      static_cast<Answer*>(to)->etag = std::string(line.substr(0, line.find_last_not_of("\r\n ") + 1));
    }
    return size * count;
  }
  static std::size_t give_body(char* data, std::size_t size, std::size_t count, void* from) {
    Body& body = *static_cast<Body*>(from);
    try {
      if (body.piece.empty()) body.piece = body.next();
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
  Answer answer_ = {};
  Body body_ = {};
  char error_[CURL_ERROR_SIZE] = {};
};

[[noreturn]] void fail(const Answer& answer, const char* doing, const std::string& url) {
  const std::string reason =
      answer.status == 0 ? answer.fault : fmt::format("HTTP status {} {}", answer.status, answer.body.substr(0, 500));
  const Diagnosis diagnosis = diagnose(reason);
  throw StorageFault(diagnosis.kind, fmt::format("cannot {} {}: {}{}{}", doing, url, reason,
                                                 diagnosis.advice.empty() ? "" : "; ", diagnosis.advice));
}

// `attempt` makes one request.
template <class Attempt>
Answer with_attempts(const Attempt& attempt) {
  auto pause = kFirstPause;
  for (int i = 1;; ++i, pause *= 4) {
    Answer answer = attempt();
    if (!answer.may_pass() || i == kAttempts) return answer;
    std::this_thread::sleep_for(pause);
  }
}

// Not found, the answer to HEAD and to a condition have no error of their own.
std::optional<S3Object> object_of(Answer answer, const std::string& url) {
  if (answer.status == kNotFound && answer.body.find("NoSuchBucket") == std::string::npos) return std::nullopt;
  if (answer.status != kOk) fail(answer, "read", url);
  return S3Object{std::move(answer.body), std::move(answer.etag)};
}

std::optional<std::string> etag_of(Answer answer, const std::string& url) {
  const bool is_other = answer.status == kPreconditionFailed ||
                        (answer.status == kNotFound && answer.body.find("NoSuchBucket") == std::string::npos);
  if (is_other) return std::nullopt;
  if (answer.status != kOk) fail(answer, "write", url);
  return std::move(answer.etag);
}

void add_condition(Request& request, const std::optional<std::string>& expected) {
  request.add_header(expected ? "If-Match: " + *expected : "If-None-Match: *");
}

}  // namespace

std::string S3Requests::url_of(const std::string& key) const {
  if (!bucket_.is_in_host_name) return fmt::format("{}/{}/{}", bucket_.endpoint, bucket_.name, encoded(key));
  const std::size_t host = bucket_.endpoint.find("://") + 3;
  return fmt::format("{}{}.{}/{}", bucket_.endpoint.substr(0, host), bucket_.name, bucket_.endpoint.substr(host),
                     encoded(key));
}

std::optional<S3Object> S3Requests::get(const std::string& key, const S3Credentials& credentials) const {
  const std::string url = url_of(key);
  return object_of(with_attempts([&] { return Request(url, bucket_, credentials).perform(); }), url);
}

std::optional<S3Object> S3Requests::head(const std::string& key, const S3Credentials& credentials) const {
  const std::string url = url_of(key);
  return object_of(with_attempts([&] {
                     Request request(url, bucket_, credentials);
                     request.set(CURLOPT_NOBODY, 1L);
                     return request.perform();
                   }),
                   url);
}

std::optional<std::string> S3Requests::put(const std::string& key, std::string_view bytes,
                                           const std::optional<std::string>& expected,
                                           const S3Credentials& credentials) const {
  const std::string url = url_of(key);
  return etag_of(with_attempts([&] {
                   Request request(url, bucket_, credentials);
                   add_condition(request, expected);
                   request.send(static_cast<std::int64_t>(bytes.size()),
                                [rest = bytes]() mutable { return std::exchange(rest, {}); });
                   return request.perform();
                 }),
                 url);
}

std::optional<std::string> S3Requests::put_file(const std::string& key, const fs::path& file,
                                                const std::optional<std::string>& expected,
                                                const S3Credentials& credentials) const {
  const std::string url = url_of(key);
  return etag_of(with_attempts([&] {
                   LocalFile source(file);
                   Request request(url, bucket_, credentials);
                   add_condition(request, expected);
                   request.send(static_cast<std::int64_t>(source.size()), std::ref(source));
                   return request.perform();
                 }),
                 url);
}

}  // namespace cadre::storage
