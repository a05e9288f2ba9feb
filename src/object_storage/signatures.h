// Signatures of requests, and their encoding; by OpenSSL.
#pragma once

#include <string>
#include <string_view>

namespace cadre::storage {

// Return base64 text: the first with padding; the second for URLs, with "-_" for "+/" and without padding.
std::string base64(std::string_view bytes);
std::string base64_of_urls(std::string_view bytes);
// Decodes base64 with padding. Throws StorageFault if the text is invalid.
std::string from_base64(std::string_view text);

std::string hmac_sha256(std::string_view key, std::string_view text);
// Returns the RSA signature with SHA-256 (RS256 of JSON Web Signatures). Throws StorageFault if the PEM key is
// invalid.
std::string rsa_sha256(const std::string& pem, std::string_view text);

}  // namespace cadre::storage
