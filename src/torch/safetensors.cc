#include "cadre/torch/safetensors.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/json.h"
#include "torch/faults.h"
#include "torch/module_state.h"
#include "torch/safetensors_header.h"
#include "torch/stored_tensors.h"

namespace cadre {
namespace {
namespace fs = std::filesystem;

constexpr std::string_view kIndexEnd = ".json";

// Returns the names that share a tensor with an earlier one, and that one's.
Dict later_names(pt::NamedTensors& tensors) {
  Dict later;
  std::map<std::pair<const void*, std::vector<std::int64_t>>, std::string> first;
  std::erase_if(tensors, [&](const auto& named) {
    const auto& [name, tensor] = named;
    if (tensor.numel() == 0) return false;
    std::vector<std::int64_t> layout = tensor.sizes().vec();
    layout.insert(layout.end(), tensor.strides().begin(), tensor.strides().end());
    const auto [found, is_first] = first.try_emplace({tensor.const_data_ptr(), std::move(layout)}, name);
    if (!is_first) later.emplace_back(name, found->second);
    return !is_first;
  });
  return later;
}

base::ReadableFile open(const fs::path& file) {
  auto opened = base::ReadableFile::open(file, base::ReadableFile::Links::follow);
  if (opened) return *std::move(opened);
  throw NotFound("there is no file " + file.string());
}

[[noreturn]] void refuse(const fs::path& file, const std::string& why) {
  throw StorageError("cannot read " + file.string() + ": " + why);
}

void read_whole(const base::ReadableFile& file, std::uint64_t offset, std::span<std::byte> bytes) {
  if (file.read(offset, bytes) != bytes.size()) refuse(file.path(), "it is cut");
}

pt::NamedTensors read_tensors(const fs::path& path) {
  const base::ReadableFile file = open(path);
  const std::string source = path.string();
  std::array<std::byte, pt::kSafetensorsLengthBytes> length{};
  if (file.read(0, length) != length.size()) refuse(path, "it is no safetensors file, or is cut");
  std::string json(pt::safetensors_json_bytes(length, file.size(), source), '\0');
  read_whole(file, length.size(), std::as_writable_bytes(std::span(json)));
  const pt::SafetensorsHeader header = pt::parse_safetensors_header(json, file.size(), pt::Alignment::any, source);
  pt::NamedTensors tensors;
  for (const pt::StoredTensor& stored : header.tensors) {
    torch::Tensor tensor = torch::empty(stored.shape, pt::scalar_type(stored, source));
    read_whole(file, header.size_bytes + stored.offset,
               {static_cast<std::byte*>(tensor.mutable_data_ptr()), stored.size_bytes});
    tensors.emplace_back(stored.name, std::move(tensor));
  }
  return tensors;
}

// Returns the tensors of all files of an index: {"weight_map": {tensor: file}}.
pt::NamedTensors read_indexed(const fs::path& index) {
  const Value content = base::parse_json(base::read_file(index), index.string());
  const Value* const files = content.is_dict() ? find_entry(content.dict(), "weight_map") : nullptr;
  if (files == nullptr || !files->is_dict()) refuse(index, "it has no \"weight_map\", files by tensor");
  std::map<std::string, std::set<std::string>> names_by_file;
  for (const auto& [name, file] : files->dict()) {
    if (!file.is_string() || file.get<std::string>().find('/') != std::string::npos)
      refuse(index, "the file of \"" + name + "\" is " + to_json(file) + ", and not one beside it");
    names_by_file[file.get<std::string>()].insert(name);
  }
  pt::NamedTensors all;
  for (const auto& [file, names] : names_by_file) {
    const fs::path path = index.parent_path() / file;
    std::set<std::string> missing = names;
    for (auto& [name, tensor] : read_tensors(path)) {
      if (missing.erase(name) == 0)
        refuse(path, "it has \"" + name + "\", which " + index.string() + " does not name for it");
      all.emplace_back(name, std::move(tensor));
    }
    if (!missing.empty())
      refuse(path, "it lacks \"" + *missing.begin() + "\", which " + index.string() + " names for it");
  }
  return all;
}

}  // namespace

void save_safetensors(const fs::path& file, const torch::nn::Module& model) {
  pt::NamedTensors tensors = pt::tensors_of(model);
  Dict metadata{{"format", "pt"}};
  for (auto& entry : later_names(tensors)) metadata.push_back(std::move(entry));
  const pt::TensorPieces pieces = pt::to_pieces(tensors, metadata);
  base::AppendFile output(file);
  output.replace("");
  for (const std::span<const std::byte> piece : pieces.bytes())
    output.append({reinterpret_cast<const char*>(piece.data()), piece.size()});
}

void load_safetensors(const fs::path& file, torch::nn::Module& model) {
  pt::NamedTensors found = file.extension() == kIndexEnd ? read_indexed(file) : read_tensors(file);
  pt::NamedTensors own = pt::tensors_of(model);
  std::set<std::string> names;
  for (const auto& [name, tensor] : found) names.insert(name);
  // One of the names that share a tensor is enough: a program writes any of them.
  std::map<std::string, std::vector<std::string>> shared;  // by the first of them
  for (const auto& [later, first] : later_names(own)) {
    const std::string& kept = first.get<std::string>();
    shared.try_emplace(kept, std::vector{kept}).first->second.push_back(later);
  }
  for (const auto& [kept, all] : shared) {
    const auto there = std::ranges::find_if(all, [&](const std::string& name) { return names.contains(name); });
    if (there == all.end()) continue;
    const auto tensor = std::ranges::find(found, *there, [](const auto& named) { return named.first; })->second;
    for (const std::string& name : all)
      if (!names.contains(name)) found.emplace_back(name, tensor);
  }
  pt::DictBuilder state;
  for (const auto& [name, tensor] : found) state.add(name, tensor);
  pt::Faults faults;
  const pt::ModuleUpdate update = pt::prepare_module_update(model, state.take(), faults);
  faults.throw_if_any("cannot load " + file.string());
  update.apply();
}

}  // namespace cadre
