#include "engine/cluster/handshake.h"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>

#include "base/checksum.h"
#include "base/file.h"
#include "base/json.h"
#include "cadre/stored.h"
#include "channel/little_endian.h"

namespace cadre::engine::cluster {
namespace {

constexpr std::uint32_t kMagic = 0x41524443;  // "CDRA"
constexpr std::size_t kGreetingHeaderBytes = 8;

void append_text(channel::Bytes& bytes, const Value& value) {
  std::string text;
  base::append_json(text, value);
  channel::append_number(bytes, kMagic);
  channel::append_number(bytes, static_cast<std::uint32_t>(text.size()));
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  bytes.insert(bytes.end(), begin, begin + text.size());
}

// Takes the text of a greeting.
std::optional<Value> take_text(channel::Bytes& bytes) {
  std::array<std::byte, 4> magic;
  for (std::size_t i = 0; i < magic.size(); ++i) magic[i] = static_cast<std::byte>(kMagic >> (8 * i));
  const std::size_t compared = std::min(bytes.size(), magic.size());
  if (!std::equal(magic.begin(), magic.begin() + static_cast<std::ptrdiff_t>(compared), bytes.begin()))
    throw channel::ProtocolError("a connection does not begin with a greeting of Cadre");
  if (bytes.size() < kGreetingHeaderBytes) return std::nullopt;
  const std::size_t length = channel::read_number<std::uint32_t>(std::span(bytes).subspan(4));
  if (length > max_greeting_bytes)
    throw channel::ProtocolError(fmt::format("a greeting has {} bytes; the limit is {}", length, max_greeting_bytes));
  if (bytes.size() < kGreetingHeaderBytes + length) return std::nullopt;
  const std::string text(reinterpret_cast<const char*>(bytes.data()) + kGreetingHeaderBytes, length);
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(kGreetingHeaderBytes + length));
  try {
    return base::parse_json(text, "a greeting");
  } catch (const StorageError& error) {
    throw channel::ProtocolError(error.what());
  }
}

template <class Greeting>
Greeting read(const Value& value) {
  Greeting greeting;
  try {
    from_stored(greeting, Stored(value));
  } catch (const InvalidArgument& error) {
    throw channel::ProtocolError(fmt::format("a greeting cannot be read: {}", error.what()));
  }
  return greeting;
}

// Finds the build id among the notes of the program, which is the first object that the loader tells of.
int find_build_id(dl_phdr_info* object, std::size_t, void* found) {
  for (const ElfW(Phdr) & header : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
    if (header.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const char*>(object->dlpi_addr + header.p_vaddr);
    const char* const end = at + header.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const char* const name = at + sizeof note;
      const auto padded = [](std::size_t size) { return (size + 3) / 4 * 4; };
      const char* const content = name + padded(note.n_namesz);
      if (note.n_type == NT_GNU_BUILD_ID && std::string_view(name, note.n_namesz) == std::string_view("GNU", 4)) {
        for (const char byte : std::string_view(content, note.n_descsz))
          *static_cast<std::string*>(found) += fmt::format("{:02x}", static_cast<unsigned char>(byte));
        return 1;
      }
      at = content + padded(note.n_descsz);
    }
  }
  return 1;
}

}  // namespace

void append(channel::Bytes& bytes, const Hello& hello) { append_text(bytes, to_stored(hello)); }
void append(channel::Bytes& bytes, const Welcome& welcome) { append_text(bytes, to_stored(welcome)); }

std::optional<Hello> take_hello(channel::Bytes& bytes) {
  const std::optional<Value> text = take_text(bytes);
  if (!text) return std::nullopt;
  if (!text->is_dict()) throw channel::ProtocolError("a greeting is no dictionary");
  const Value* const protocol = find_entry(text->dict(), "protocol");
  if (protocol != nullptr && protocol->is_integer() && protocol->get<std::int64_t>() != protocol_version)
    return Hello{.protocol = protocol->get<std::int64_t>()};
  return read<Hello>(*text);
}

std::optional<Welcome> take_welcome(channel::Bytes& bytes) {
  const std::optional<Value> text = take_text(bytes);
  return text ? std::optional(read<Welcome>(*text)) : std::nullopt;
}

const std::string& build_id() {
  // Never destroyed: engines are asked until the last static objects are.
  static const std::string* const id = [] {
    auto* const found = new std::string;
    ::dl_iterate_phdr(find_build_id, found);
    if (found->empty()) *found = fmt::format("{:016x}", base::checksum_of(base::read_file("/proc/self/exe")));
    return found;
  }();
  return *id;
}

}  // namespace cadre::engine::cluster
