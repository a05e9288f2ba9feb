// TLS 1.3 by OpenSSL, which is linked into this library and hidden in it.
#include "channel/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <memory>
#include <system_error>
#include <utility>

namespace cadre::channel {
namespace {

constexpr const char* kName = "cadre-controller";
constexpr long kDay = 24L * 60 * 60;
constexpr long kValidDays = 3650;
// Clocks of machines differ: the certificate is valid from yesterday on.
constexpr long kSlackDays = 1;

template <auto free>
struct Free {
  template <class Object>
  void operator()(Object* object) const {
    free(object);
  }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using X509Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Context = std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Free<SSL_free>>;

std::string last_error() {
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  std::array<char, 256> text{};
  ERR_error_string_n(error, text.data(), text.size());
  return error == 0 ? "no reason given" : text.data();
}

template <class Object>
Object made(Object object) {
  if (!object) throw EngineError("OpenSSL failed: " + last_error());
  return object;
}

void check(int result) {
  if (result <= 0) throw EngineError("OpenSSL failed: " + last_error());
}

std::string text_of(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string hex(const unsigned char* bytes, std::size_t count) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

// ---- A socket as OpenSSL sees it: its own would raise SIGPIPE, by which the user's program may live

int size_for_openssl(std::size_t size) {
  return static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max()));
}

template <class Call>
int transfer(BIO* bio, void (*retry)(BIO*), Call call) {
  BIO_clear_retry_flags(bio);
  for (;;) {
    const ssize_t count = call(static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio))));
    if (count >= 0) return static_cast<int>(count);
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) retry(bio);
    return -1;
  }
}

int write_socket(BIO* bio, const char* bytes, int count) {
  return transfer(
      bio, [](BIO* of) { BIO_set_retry_write(of); },
      [&](int socket) { return ::send(socket, bytes, static_cast<std::size_t>(count), MSG_DONTWAIT | MSG_NOSIGNAL); });
}

int read_socket(BIO* bio, char* space, int count) {
  return transfer(
      bio, [](BIO* of) { BIO_set_retry_read(of); },
      [&](int socket) { return ::recv(socket, space, static_cast<std::size_t>(count), MSG_DONTWAIT); });
}

long control_socket(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO_METHOD* socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "cadre socket");
    BIO_meth_set_write(made, write_socket);
    BIO_meth_set_read(made, read_socket);
    BIO_meth_set_ctrl(made, control_socket);
    return made;
  }();
  return method;
}

// ---- Streams

class TlsStream final : public Stream {
 public:
  TlsStream(base::FileDescriptor socket, SSL_CTX* context, bool accepts)
      : socket_(std::move(socket)), session_(made(Session(SSL_new(context)))) {
    BIO* const bio = made(BIO_new(socket_method()));
    BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(socket_.get())));
    BIO_set_init(bio, 1);
    SSL_set_bio(session_.get(), bio, bio);  // which owns it from now on
    if (accepts) {
      SSL_set_accept_state(session_.get());
    } else {
      SSL_set_connect_state(session_.get());
      check(SSL_set1_host(session_.get(), kName));
      check(SSL_set_tlsext_host_name(session_.get(), kName) == 1);
    }
  }

  std::size_t read(std::span<std::byte> space) override {
    return transferred(SSL_read(session_.get(), space.data(), size_for_openssl(space.size())), read_waits_to_write_);
  }
  std::size_t write(std::span<const std::byte> bytes) override {
    if (bytes.empty()) return 0;
    return transferred(SSL_write(session_.get(), bytes.data(), size_for_openssl(bytes.size())), write_waits_to_write_);
  }
  bool has_more_to_read() const override { return SSL_has_pending(session_.get()) != 0; }
  bool waits_to_write() const override { return read_waits_to_write_ || write_waits_to_write_; }
  int descriptor() const override { return socket_.get(); }

 private:
  std::size_t transferred(int count, bool& waits_to_write) {
    waits_to_write = false;
    if (count > 0) return static_cast<std::size_t>(count);
    const int system = errno;
    switch (SSL_get_error(session_.get(), count)) {
      case SSL_ERROR_WANT_WRITE:
        waits_to_write = true;
        return 0;
      case SSL_ERROR_WANT_READ:
        return 0;
      case SSL_ERROR_ZERO_RETURN:
        throw StreamEnded("the other end has closed the connection");
      case SSL_ERROR_SYSCALL:
        ERR_clear_error();
        throw StreamEnded(system == 0 ? "the other end has closed the connection"
                                      : "the connection broke: " + std::generic_category().message(system));
      default:
        throw StreamEnded("the connection is not encrypted as it must be: " + last_error());
    }
  }

  base::FileDescriptor socket_;
  Session session_;
  bool read_waits_to_write_ = false;
  bool write_waits_to_write_ = false;
};

class Endpoint final : public TlsEndpoint {
 public:
  Endpoint(Context context, bool accepts) : context_(std::move(context)), accepts_(accepts) {}

  std::unique_ptr<Stream> open(base::FileDescriptor socket) const override {
    return std::make_unique<TlsStream>(std::move(socket), context_.get(), accepts_);
  }

 private:
  Context context_;
  bool accepts_;
};

Context make_context(const SSL_METHOD* method) {
  Context context = made(Context(SSL_CTX_new(method)));
  check(SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION));
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_read_ahead(context.get(), 1);  // one system call for a record, not two
  check(SSL_CTX_set_num_tickets(context.get(), 0));
  return context;
}

X509Certificate read_certificate(const std::string& text) {
  const Bio bio = made(Bio(BIO_new_mem_buf(text.data(), size_for_openssl(text.size()))));
  X509Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (certificate == nullptr) throw InvalidArgument("this is no certificate: " + last_error());
  return certificate;
}

Key read_key(const std::string& text) {
  const Bio bio = made(Bio(BIO_new_mem_buf(text.data(), size_for_openssl(text.size()))));
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  if (key == nullptr) throw InvalidArgument("this is no private key: " + last_error());
  return key;
}

void add_name(X509* certificate) {
  X509_NAME* const name = X509_get_subject_name(certificate);
  check(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(kName), -1, -1, 0));
  check(X509_set_issuer_name(certificate, name));
  const std::string alternative = std::string("DNS:") + kName;
  const std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>> extension(
      X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, alternative.c_str()));
  check(X509_add_ext(certificate, made(extension.get()), -1));
}

class OpenSsl final : public Tls {
 public:
  Identity make_identity() const override {
    const Key key = made(Key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256")));
    const X509Certificate certificate = made(X509Certificate(X509_new()));
    check(X509_set_version(certificate.get(), X509_VERSION_3));
    check(ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1));
    made(X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kSlackDays * kDay));
    made(X509_gmtime_adj(X509_getm_notAfter(certificate.get()), kValidDays * kDay));
    check(X509_set_pubkey(certificate.get(), key.get()));
    add_name(certificate.get());
    check(X509_sign(certificate.get(), key.get(), EVP_sha256()));
    const Bio public_text = made(Bio(BIO_new(BIO_s_mem())));
    const Bio private_text = made(Bio(BIO_new(BIO_s_mem())));
    check(PEM_write_bio_X509(public_text.get(), certificate.get()));
    check(PEM_write_bio_PrivateKey(private_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr));
    return {text_of(public_text), text_of(private_text)};
  }

  std::unique_ptr<TlsEndpoint> server(const Identity& identity) const override {
    const X509Certificate certificate = read_certificate(identity.certificate);
    const Key key = read_key(identity.key);
    Context context = make_context(TLS_server_method());
    check(SSL_CTX_use_certificate(context.get(), certificate.get()));
    check(SSL_CTX_use_PrivateKey(context.get(), key.get()));
    return std::make_unique<Endpoint>(std::move(context), true);
  }

  std::unique_ptr<TlsEndpoint> client(const std::string& trusted) const override {
    const X509Certificate certificate = read_certificate(trusted);
    Context context = make_context(TLS_client_method());
    check(X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), certificate.get()));
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    return std::make_unique<Endpoint>(std::move(context), false);
  }

  std::string authenticate(const std::string& secret, const std::string& text) const override {
    std::array<unsigned char, EVP_MAX_MD_SIZE> code{};
    unsigned size = 0;
    made(HMAC(EVP_sha256(), secret.data(), size_for_openssl(secret.size()),
              reinterpret_cast<const unsigned char*>(text.data()), text.size(), code.data(), &size));
    return hex(code.data(), size);
  }

  std::string make_secret() const override {
    std::array<unsigned char, 32> bytes{};
    check(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())));
    return hex(bytes.data(), bytes.size());
  }
};

}  // namespace
}  // namespace cadre::channel

extern "C" __attribute__((visibility("default"))) const cadre::channel::Tls* cadre_tls() {
  // Connections are closed by destructors of static objects, which run after what OpenSSL would do at the end.
  ::OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  static const cadre::channel::OpenSsl instance;
  return &instance;
}
