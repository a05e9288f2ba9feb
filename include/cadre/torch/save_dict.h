/// \file
/// Checkpoint files with whatever a training consists of: models, optimizers, schedules, tensors, values and the states
/// of random generators, under names of the program's own.
///
///     save_dict(directory / "state.pt", {{"netG", generator}, {"netD", discriminator}, {"optimG", optimizer_g},
///                                        {"optimD", optimizer_d}, {"scheduler", scheduler},
///                                        {"random", RandomStates()}, {"epoch", epoch}});
///     load_dict(checkpoint.path() / "state.pt", {{"netG", generator}, {"netD", discriminator},
///                                                {"optimG", optimizer_g}, {"optimD", optimizer_d},
///                                                {"scheduler", scheduler}, {"random", RandomStates()},
///                                                {"epoch", epoch}});
///
/// A TrainingState names objects once that are both saved and loaded.
///
/// The files are those of Python's torch.save: torch.load(file, weights_only=True) gives the dictionary, whose entries
/// load_state_dict() and set_rng_state() of the Python classes accept; and load_dict reads the dictionaries that
/// programs in Python save, such as {"model_state_dict": …, "optimizer_state_dict": …, "epoch": …}.
///
/// Threads: any, but each object and file in one thread at a time.
#pragma once

#include <torch/torch.h>

#include <concepts>
#include <filesystem>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "cadre/torch.h"
#include "cadre/torch/averaged_weights.h"
#include "cadre/torch/grad_scaler.h"
#include "cadre/torch/lr_scheduler.h"
#include "cadre/typed_config.h"
#include "cadre/value.h"

namespace cadre {

namespace detail {
// An object with a state of values.
template <class T>
concept HasState = requires(const T& saved, T& loaded, const Dict& state) {
  { saved.state_dict() } -> std::same_as<Dict>;
  loaded.load_state_dict(state);
};
}  // namespace detail

/// Stands for the states of libtorch's default generators, of the CPU and of all GPUs that the program sees: with them
/// a run with dropout or augmentation goes on as if it had not been interrupted. In the file it is {"cpu": state,
/// "cuda": [state of each]}, as get_rng_state() of Python's torch and torch.cuda have them.
struct RandomStates {};

class SavedItem;
/// Names and what is saved under them, in the order of the file.
using SavedItems = std::vector<std::pair<std::string, SavedItem>>;

/// Names one thing that save_dict writes. Refers to the objects that it was made of, which must live until it is used.
class SavedItem {
 public:
  SavedItem(const torch::nn::Module& module) : data_(&module) {}  ///< its state_dict
  /// The state_dict of the module of a handle of TORCH_MODULE.
  template <detail::ModuleHolder Holder>
  SavedItem(const Holder& model) : data_(static_cast<const torch::nn::Module*>(model.get())) {}
  SavedItem(const torch::optim::Optimizer& optimizer) : data_(&optimizer) {}   ///< its state_dict
  SavedItem(const optim::LRScheduler& scheduler) : data_(&scheduler) {}        ///< its state_dict
  SavedItem(const optim::ReduceLROnPlateau& scheduler) : data_(&scheduler) {}  ///< its state_dict
  SavedItem(const AveragedWeights& averages) : data_(&averages) {}  ///< the state_dict of Python's AveragedModel
  SavedItem(const GradScaler& scaler) : data_(&scaler) {}           ///< its state_dict
  /// Any other object with a state, such as a data loader: saves what state_dict() returns now.
  template <detail::HasState T>
  SavedItem(const T& object) : data_(Value(object.state_dict())) {}
  SavedItem(torch::Tensor tensor) : data_(std::move(tensor)) {}  ///< without its gradient
  SavedItem(RandomStates) : data_(RandomStates()) {}             ///< as they are when it is written
  SavedItem(SavedItems items) : data_(std::move(items)) {}       ///< a dictionary of them
  /// Numbers, text, lists and dictionaries.
  template <class T>
    requires(std::convertible_to<const T&, Value> && !std::convertible_to<const T&, torch::Tensor>)
  SavedItem(const T& value) : data_(Value(value)) {}

  /// The alternatives.
  using Data = std::variant<const torch::nn::Module*, const torch::optim::Optimizer*, const optim::LRScheduler*,
                            const optim::ReduceLROnPlateau*, const AveragedWeights*, const GradScaler*, torch::Tensor,
                            RandomStates, Value, SavedItems>;
  const Data& data() const { return data_; }  ///< returns the alternatives, for std::visit

 private:
  Data data_;
};

/// Writes a dictionary of the items. A scheduler's optimizer, if it is among them, also has what Python's scheduler
/// keeps in its groups ("initial_lr" and the like). Tensors on other devices are copied to the CPU. An existing file is
/// replaced. The file is not synced to disk; reporting a checkpoint does that.
/// Throws InvalidArgument for an optimizer that save_state refuses, averages between two calls of swap(), a tensor that
/// is sparse or quantized, tensors of different types that share memory, and a name that is there twice; StorageError
/// (OutOfSpace on a full disk) if the file cannot be written; a partial file is then unusable.
void save_dict(const std::filesystem::path& file, const SavedItems& items);

class LoadedItem;
/// Names in a file, and what they are loaded into.
using LoadedItems = std::vector<std::pair<std::string, LoadedItem>>;

/// Names one thing that load_dict fills. Refers to the object that it was made of.
class LoadedItem {
 public:
  LoadedItem(torch::nn::Module& module) : data_(&module) {}  ///< as load_state does
  /// The module of a handle of TORCH_MODULE.
  template <detail::ModuleHolder Holder>
  LoadedItem(Holder& model) : data_(static_cast<torch::nn::Module*>(model.get())) {}
  LoadedItem(torch::optim::Optimizer& optimizer) : data_(&optimizer) {}   ///< as load_state does
  LoadedItem(optim::LRScheduler& scheduler) : data_(&scheduler) {}        ///< its state, with the schedule's numbers
  LoadedItem(optim::ReduceLROnPlateau& scheduler) : data_(&scheduler) {}  ///< its state, with its options
  LoadedItem(AveragedWeights& averages) : data_(&averages) {}             ///< its averages, and the number of updates
  LoadedItem(GradScaler& scaler) : data_(&scaler) {}                      ///< its state, with its options
  /// Any other object with a state, such as a data loader: load_state_dict() gets the entry. If it refuses that, all
  /// objects are unchanged where it has a prepare(), as those of Cadre have, and otherwise those whose names come after
  /// its own.
  template <detail::HasState T>
  LoadedItem(T& object)
      : data_(Accessor{.set = [&object](const Value& value) -> std::function<void()> {
                         if constexpr (requires { object.prepare(value.dict()); }) {
                           return object.prepare(value.dict());
                         } else {
                           return [&object, value] { object.load_state_dict(value.dict()); };
                         }
                       },
                       .get = [&object] { return Value(std::as_const(object).state_dict()); }}) {}
  /// A tensor that is defined must have the file's shape and gets its values; another one becomes the file's, on the
  /// CPU.
  LoadedItem(torch::Tensor& tensor) : data_(&tensor) {}
  LoadedItem(RandomStates) : data_(RandomStates()) {}         ///< those of GPUs that the file lacks stay as they are
  LoadedItem(LoadedItems items) : data_(std::move(items)) {}  ///< a dictionary of them
  /// A bool, a number, std::string, List, Dict or Value, and a std::vector of these.
  template <class T>
    requires(!std::is_const_v<T> && detail::is_gettable<T>)
  LoadedItem(T& target)
      : data_(Accessor{.set = [&target](const Value& value) -> std::function<void()> {
                         return [&target, found = value.get<T>()] { target = found; };
                       },
                       .get = [&target] { return detail::to_value(target); }}) {}

  /// Writes and reads an object by values.
  struct Accessor {
    /// Checks a value, and returns what takes it over. Throws InvalidArgument for a value of another type.
    std::function<std::function<void()>(const Value& value)> set;
    std::function<Value()> get;  ///< returns the object's present value
  };
  /// The alternatives.
  using Data =
      std::variant<torch::nn::Module*, torch::optim::Optimizer*, optim::LRScheduler*, optim::ReduceLROnPlateau*,
                   AveragedWeights*, GradScaler*, torch::Tensor*, RandomStates, Accessor, LoadedItems>;
  const Data& data() const { return data_; }  ///< returns the alternatives, for std::visit

 private:
  Data data_;
};

/// Reads a file of save_dict, save_state or Python's torch.save into objects of the same structure; entries of the file
/// that are not named are left out. For modules and optimizers see load_state.
/// Throws NotFound if there is no file; StorageError, with file and offset, if it is damaged, truncated, or holds
/// anything but dictionaries, lists, numbers, text and tensors; InvalidArgument that names every entry that is missing
/// or does not fit, and why. After an error all objects are unchanged.
void load_dict(const std::filesystem::path& file, const LoadedItems& items);

/// Whatever a training consists of, named once for both directions:
///
///     const TrainingState state({{"model", model}, {"optimizer", optimizer}, {"epoch", epoch}});
///     if (const auto checkpoint = train::get_checkpoint()) state.load(checkpoint->path() / "state.pt");
///     ...
///     state.save(directory / "state.pt");
class TrainingState {
 public:
  /// Refers to the objects that the items were made of, which must live as long as this object.
  explicit TrainingState(LoadedItems items) : items_(std::move(items)) {}

  /// Writes all of them as they are now. Throws like save_dict.
  void save(const std::filesystem::path& file) const;
  /// Reads them from a file. Throws like load_dict; then all of them are unchanged.
  void load(const std::filesystem::path& file) const { load_dict(file, items_); }

 private:
  LoadedItems items_;
};

}  // namespace cadre
