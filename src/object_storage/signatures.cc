#include "object_storage/signatures.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>

#include <algorithm>
#include <memory>

#include "storage/storage.h"

namespace cadre::storage {
namespace {

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }
unsigned char* bytes_of(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

struct Free {
  void operator()(BIO* bio) const { ::BIO_free(bio); }
  void operator()(EVP_PKEY* key) const { ::EVP_PKEY_free(key); }
  void operator()(EVP_MD_CTX* context) const { ::EVP_MD_CTX_free(context); }
};

}  // namespace

std::string base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // with the zero byte that OpenSSL writes
  text.resize(
      static_cast<std::size_t>(::EVP_EncodeBlock(bytes_of(text), bytes_of(bytes), static_cast<int>(bytes.size()))));
  return text;
}

std::string base64_of_urls(std::string_view bytes) {
  std::string text = base64(bytes);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  while (text.ends_with('=')) text.pop_back();
  return text;
}

std::string from_base64(std::string_view text) {
  std::string bytes(text.size() / 4 * 3 + 3, '\0');
  const int size = ::EVP_DecodeBlock(bytes_of(bytes), bytes_of(text), static_cast<int>(text.size()));
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  if (size < static_cast<int>(padding))
    throw StorageFault(StorageFault::Kind::denied,
                       "the account's key (AZURE_STORAGE_KEY) is no base64 text: copy it again");
  bytes.resize(static_cast<std::size_t>(size) - padding);
  return bytes;
}

std::string hmac_sha256(std::string_view key, std::string_view text) {
  std::string code(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  if (::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes_of(text), text.size(), bytes_of(code),
             &size) == nullptr)
    throw StorageFault(StorageFault::Kind::lasting, "OpenSSL cannot sign");
  code.resize(size);
  return code;
}

std::string rsa_sha256(const std::string& pem, std::string_view text) {
  const std::unique_ptr<BIO, Free> bio(::BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const std::unique_ptr<EVP_PKEY, Free> key(::PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
  if (key == nullptr)
    throw StorageFault(StorageFault::Kind::denied, "the private key of the credentials cannot be read");
  const std::unique_ptr<EVP_MD_CTX, Free> context(::EVP_MD_CTX_new());
  std::size_t size = 0;
  std::string signature;
  const bool is_signed = ::EVP_DigestSignInit(context.get(), nullptr, ::EVP_sha256(), nullptr, key.get()) == 1 &&
                         ::EVP_DigestSign(context.get(), nullptr, &size, bytes_of(text), text.size()) == 1 &&
                         (signature.resize(size), ::EVP_DigestSign(context.get(), bytes_of(signature), &size,
                                                                   bytes_of(text), text.size()) == 1);
  if (!is_signed) throw StorageFault(StorageFault::Kind::denied, "the private key of the credentials cannot sign");
  signature.resize(size);
  return signature;
}

}  // namespace cadre::storage
