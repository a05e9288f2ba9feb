#include "data/web_samples.h"

#include <arrow/buffer.h>
#include <arrow/io/buffered.h>
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "cadre/error.h"
#include "data/arrow_status.h"

namespace cadre::data {
namespace {

constexpr std::int64_t kTarBufferBytes = std::int64_t{1} << 20;

TarReader open_tar(const InputFile& file) {
  const std::string doing = "cannot read " + file.shown;
  return {
      checked(arrow::io::BufferedInputStream::Create(kTarBufferBytes, arrow::default_memory_pool(), file.open_stream()),
              doing),
      doing};
}

}  // namespace

bool fits_suffix(std::string_view suffix, const Names& patterns) {
  const std::string dotted = "." + std::string(suffix);
  return patterns.empty() || std::ranges::any_of(patterns, [&](const std::string& pattern) {
           if (pattern.find_first_of("*?") != pattern.npos) return ::fnmatch(pattern.c_str(), dotted.c_str(), 0) == 0;
           return suffix == pattern || dotted == pattern;
         });
}

const arrow::Buffer* WebSample::find(std::string_view suffix) const {
  const auto found =
      std::ranges::find(members, suffix, [](const auto& member) -> std::string_view { return member.first; });
  return found == members.end() ? nullptr : found->second.get();
}

WebSamples::WebSamples(const InputFile& file, Wants wants) : archive_(open_tar(file)), wants_(std::move(wants)) {}

std::optional<WebSamples::Member> WebSamples::next_member() {
  while (auto name = archive_.next()) {
    const std::size_t begin = name->rfind('/') + 1;
    const std::size_t dot = name->find('.', begin);
    if (dot == name->npos || dot == begin) continue;  // a hidden file, or one without a suffix
    return Member{.key = name->substr(0, dot), .suffix = name->substr(dot + 1)};
  }
  return std::nullopt;
}

std::optional<WebSample> WebSamples::next() {
  std::optional<Member> member = ahead_ ? std::exchange(ahead_, std::nullopt) : next_member();
  if (!member) return std::nullopt;
  WebSample sample{.key = member->key};
  if (!keys_.insert(sample.key).second)
    throw StorageError(
        fmt::format("the files of the sample \"{}\" are not next to each other in the archive: write it "
                    "again, in the order of its names (tar --sort=name)",
                    sample.key));
  do {
    if (sample.find(member->suffix) != nullptr)
      throw StorageError(fmt::format("the sample \"{}\" has two files \".{}\"", sample.key, member->suffix));
    if (wants_(member->suffix)) sample.members.emplace_back(member->suffix, archive_.content());
    member = next_member();
  } while (member && member->key == sample.key);
  ahead_ = std::move(member);
  return sample;
}

}  // namespace cadre::data
