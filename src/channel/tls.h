// Encrypted streams: TLS 1.3, with certificates that Cadre makes itself. The implementation is a library of its own
// (src/tls), which a process loads when it first needs it: workers never do, and no symbol of OpenSSL meets another
// copy of it in the program.
#pragma once

#include <memory>
#include <string>

#include "base/file_descriptor.h"
#include "channel/stream.h"

namespace cadre::channel {

// A self-signed certificate and its private key, as PEM text.
struct Identity {
  std::string certificate = {};
  std::string key = {};
  bool operator==(const Identity&) const = default;
};

// Makes streams from connected sockets. The handshake happens while they are read and written.
class TlsEndpoint {
 public:
  virtual ~TlsEndpoint() = default;
  // Throws StreamEnded if the socket cannot be used.
  virtual std::unique_ptr<Stream> open(base::FileDescriptor socket) const = 0;
};

class Tls {
 public:
  virtual ~Tls() = default;
  // Makes a new P-256 key and a certificate for it.
  virtual Identity make_identity() const = 0;
  // Accepts connections as the one whose identity this is. Throws InvalidArgument if the text is no identity.
  virtual std::unique_ptr<TlsEndpoint> server(const Identity& identity) const = 0;
  // Opens connections to the one with exactly this certificate, and to nobody else; the stream of another one ends.
  // Throws InvalidArgument if the text is no certificate.
  virtual std::unique_ptr<TlsEndpoint> client(const std::string& certificate) const = 0;
  // Returns the HMAC-SHA256 of a text, in hexadecimal digits.
  virtual std::string authenticate(const std::string& secret, const std::string& text) const = 0;
  // Returns random bytes for secrets, in hexadecimal digits.
  virtual std::string make_secret() const = 0;
};

// Returns the library; loads it in the first call. May be called in any thread. Throws EngineError if it cannot be
// loaded.
const Tls& tls();

// Compares secrets in a time that depends on their lengths only.
bool same_secret(const std::string& one, const std::string& other);

inline constexpr const char* tls_module_file = "libcadre_tls.so";
inline constexpr const char* tls_module_function = "cadre_tls";
using TlsModule = const Tls* (*)();

}  // namespace cadre::channel
