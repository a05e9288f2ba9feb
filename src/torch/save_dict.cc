#include "cadre/torch/save_dict.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/overload.h"
#include "cadre/error.h"
#include "torch/faults.h"
#include "torch/module_state.h"
#include "torch/optimizer_state.h"
#include "torch/plain_value.h"
#include "torch/pt_file.h"
#include "torch/random_states.h"

namespace cadre {
namespace {

// The names of Python's AveragedModel, whose model is its member "module".
constexpr const char* kUpdates = "n_averaged";
constexpr const char* kModule = "module.";

// ---- Saving

pt::Value averages_to_pt(const AveragedWeights& averages, const std::string& path) {
  try {
    averages.check_not_swapped("they are saved");
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(c10::str("\"", path, "\" cannot be saved: ", error.what()));
  }
  pt::DictBuilder content;
  content.add(kUpdates, torch::tensor(averages.n_averaged(), torch::kLong));
  for (const auto& [name, tensor] : averages.tensors()) content.add(kModule + name, tensor);
  return content.take();
}

using Schedulers = std::map<const torch::optim::Optimizer*, const optim::LRScheduler*>;

void find_schedulers(const SavedItems& items, Schedulers& schedulers) {
  for (const auto& [name, item] : items) {
    if (const auto* const nested = std::get_if<SavedItems>(&item.data())) find_schedulers(*nested, schedulers);
    if (const auto* const scheduler = std::get_if<const optim::LRScheduler*>(&item.data()))
      schedulers.emplace(&(*scheduler)->optimizer(), *scheduler);
  }
}

pt::Value to_pt(const torch::optim::Optimizer& optimizer, const Schedulers& schedulers) {
  const auto scheduler = schedulers.find(&optimizer);
  if (scheduler == schedulers.end()) return pt::optimizer_state(optimizer);
  return pt::optimizer_state(optimizer, [&](std::size_t group) { return scheduler->second->entries_of_group(group); });
}

pt::Value to_pt(const SavedItems& items, const Schedulers& schedulers, const std::string& where) {
  pt::DictBuilder content;
  std::set<std::string> names;
  for (const auto& [name, item] : items) {
    if (!names.insert(name).second) throw InvalidArgument(c10::str("\"", where, name, "\" is to be saved twice"));
    const std::string inside = where + name + "/";
    content.add(name, std::visit(base::Overload{
                                     [](const torch::nn::Module* module) { return pt::module_state(*module); },
                                     [&](const torch::optim::Optimizer* one) { return to_pt(*one, schedulers); },
                                     [](const optim::LRScheduler* one) { return pt::to_pt_state(one->state_dict()); },
                                     [](const optim::ReduceLROnPlateau* one) { return pt::to_pt(one->state_dict()); },
                                     [&](const AveragedWeights* one) { return averages_to_pt(*one, where + name); },
                                     [](const GradScaler* one) { return pt::to_pt(one->state_dict()); },
                                     [](const torch::Tensor& tensor) -> pt::Value { return tensor.detach(); },
                                     [](RandomStates) { return pt::random_states(); },
                                     [](const Value& value) { return pt::to_pt(value); },
                                     [&](const SavedItems& nested) { return to_pt(nested, schedulers, inside); }},
                                 item.data()));
  }
  return content.take();
}

// ---- Loading

// Checks all entries, and remembers what is to be done when all of them are right.
class Loader {
 public:
  void prepare(const LoadedItems& items, const pt::Value& content, const std::string& where) {
    if (content.dict() == nullptr)
      return faults_.add(
          c10::str(where.empty() ? "the file" : where, " is ", content.kind_name(), ", expected a dictionary"));
    for (const auto& [name, item] : items) {
      const std::string path = where.empty() ? name : where + "/" + name;
      const pt::Value* const found = content.find(name);
      if (found == nullptr) {
        faults_.add(c10::str("there is no \"", path, "\""));
        continue;
      }
      try {
        std::visit([&](const auto& target) { prepare_one(target, *found, path); }, item.data());
      } catch (const InvalidArgument& error) {
        faults_.add(c10::str("\"", path, "\": ", error.what()));
      }
    }
  }

  void apply(const std::filesystem::path& file) {
    faults_.throw_if_any("cannot load " + file.string());
    for (const auto& act : acts_) act();
  }

 private:
  void prepare_one(torch::nn::Module* module, const pt::Value& saved, const std::string& path) {
    pt::Faults faults;
    acts_.emplace_back([update = pt::prepare_module_update(*module, saved, faults)] { update.apply(); });
    faults_.add_all(path, faults);
  }
  void prepare_one(torch::optim::Optimizer* optimizer, const pt::Value& saved, const std::string& path) {
    pt::Faults faults;
    auto update = std::make_shared<pt::OptimizerUpdate>(pt::prepare_optimizer_update(*optimizer, saved, faults));
    faults_.add_all(path, faults);
    acts_.emplace_back([update, optimizer] { update->apply(*optimizer); });
  }
  void prepare_one(optim::LRScheduler* scheduler, const pt::Value& saved, const std::string&) {
    acts_.push_back(scheduler->prepare(pt::to_plain_state(saved)));
  }
  void prepare_one(optim::ReduceLROnPlateau* scheduler, const pt::Value& saved, const std::string&) {
    acts_.push_back(scheduler->prepare(pt::to_plain_state(saved)));
  }
  void prepare_one(AveragedWeights* averages, const pt::Value& saved, const std::string&) {
    averages->check_not_swapped("they are loaded");
    const pt::Value* const updates = saved.find(kUpdates);
    const auto* const number = updates == nullptr ? nullptr : updates->get_if<torch::Tensor>();
    if (number == nullptr || number->numel() != 1 || number->scalar_type() != torch::kLong ||
        number->item<std::int64_t>() < 0)
      throw InvalidArgument("it has no n_averaged, a tensor of one integer");
    std::vector<std::pair<torch::Tensor, torch::Tensor>> copies;
    for (const auto& [name, tensor] : averages->tensors()) {
      const pt::Value* const one = saved.find(kModule + name);
      const auto* const found = one == nullptr ? nullptr : one->get_if<torch::Tensor>();
      if (found == nullptr) throw InvalidArgument(c10::str("it has no tensor ", kModule, name));
      if (found->sizes() != tensor.sizes())
        throw InvalidArgument(c10::str(kModule, name, " has the shape ", found->sizes(), " in the file and ",
                                       tensor.sizes(), " in the program"));
      copies.emplace_back(tensor, *found);
    }
    acts_.emplace_back([averages, copies = std::move(copies), updates_made = number->item<std::int64_t>()] {
      const torch::NoGradGuard no_grad;
      for (const auto& [target, source] : copies) torch::Tensor(target).copy_(source);
      averages->set_n_averaged(updates_made);
    });
  }
  void prepare_one(GradScaler* scaler, const pt::Value& saved, const std::string&) {
    acts_.push_back(scaler->prepare(pt::to_plain_state(saved)));
  }
  void prepare_one(torch::Tensor* tensor, const pt::Value& saved, const std::string&) {
    const auto* const found = saved.get_if<torch::Tensor>();
    if (found == nullptr) throw InvalidArgument(c10::str("it is ", saved.kind_name(), ", expected a tensor"));
    if (tensor->defined() && tensor->sizes() != found->sizes())
      throw InvalidArgument(c10::str("it has the shape ", c10::str(found->sizes()), " in the file and ",
                                     c10::str(tensor->sizes()), " in the program"));
    acts_.emplace_back([tensor, value = *found] {
      const torch::NoGradGuard no_grad;
      tensor->defined() ? static_cast<void>(tensor->copy_(value)) : static_cast<void>(*tensor = value);
    });
  }
  void prepare_one(RandomStates, const pt::Value& saved, const std::string&) {
    acts_.push_back(pt::prepare_random_states(saved));
  }
  void prepare_one(const LoadedItem::Accessor& object, const pt::Value& saved, const std::string&) {
    acts_.push_back(object.set(pt::to_plain(saved)));
  }
  void prepare_one(const LoadedItems& nested, const pt::Value& saved, const std::string& path) {
    prepare(nested, saved, path);
  }

  pt::Faults faults_;
  std::vector<std::function<void()>> acts_ = {};
};

// ---- Both

SavedItems to_saved(const LoadedItems& items) {
  SavedItems saved;
  for (const auto& [name, item] : items)
    saved.emplace_back(
        name, std::visit(base::Overload{[](const auto* object) -> SavedItem { return *object; },
                                        [](RandomStates states) -> SavedItem { return states; },
                                        [](const LoadedItem::Accessor& object) -> SavedItem { return object.get(); },
                                        [](const LoadedItems& nested) -> SavedItem { return to_saved(nested); }},
                         item.data()));
  return saved;
}

}  // namespace

void save_dict(const std::filesystem::path& file, const SavedItems& items) {
  Schedulers schedulers;
  find_schedulers(items, schedulers);
  pt::write_file(file, to_pt(items, schedulers, ""));
}

void load_dict(const std::filesystem::path& file, const LoadedItems& items) {
  const pt::Value content = pt::read_file(file);
  Loader loader;
  loader.prepare(items, content, "");
  loader.apply(file);
}

void TrainingState::save(const std::filesystem::path& file) const { save_dict(file, to_saved(items_)); }

}  // namespace cadre
