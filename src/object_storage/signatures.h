// Signatures as services want them, and their encoding; by OpenSSL.
#pragma once

#include <string>
#include <string_view>

namespace cadre::storage {

// With padding. The second: for tokens in URLs, "-_" for "+/" and no padding.
std::string base64(std::string_view bytes);
std::string base64_of_urls(std::string_view bytes);
// Throws StorageFault for a text that is none.
std::string from_base64(std::string_view text);

std::string hmac_sha256(std::string_view key, std::string_view text);
// RSA with SHA-256, as RS256 of JSON Web Signatures has it. Throws StorageFault for a key that is none in PEM.
std::string rsa_sha256(const std::string& pem, std::string_view text);

}  // namespace cadre::storage
