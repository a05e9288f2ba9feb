/// \file
/// Options of schedulers and the like, of types that Cadre need not know.
#pragma once

#include <concepts>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cadre/checkpoint_config.h"
#include "cadre/error.h"
#include "cadre/faults.h"
#include "cadre/stored.h"
#include "cadre/value.h"

namespace cadre::tune {

struct TunerOptions;

namespace detail {

// Options of one type, of which only the interface that is made from them is known.
template <class Made, class Setting>
class HeldOptions {
 public:
  virtual ~HeldOptions() = default;
  virtual std::string_view name() const = 0;
  virtual Value stored() const = 0;  // a dictionary; "type" is the name
  virtual std::shared_ptr<const HeldOptions> completed(TunerOptions& options,
                                                       std::vector<std::string>& notes) const = 0;
  virtual std::shared_ptr<const HeldOptions> taking_over(const HeldOptions& stored) const = 0;
  virtual void check(const TunerOptions& options, Faults& faults) const = 0;
  virtual std::unique_ptr<Made> make(const Setting& setting) const = 0;
  virtual typename Made::Traits traits() const = 0;
  // Configs that trials get after their first one, each with words for it: "iteration 5's".
  virtual std::vector<std::pair<std::string, Config>> later_configs(const Config& first) const = 0;
};

template <class Made, class Setting>
struct OptionsReader {
  using Pointer = std::shared_ptr<const HeldOptions<Made, Setting>> (*)(const Stored&);
};
// The types of options that this program has, by name. Defined for each interface that Cadre has.
template <class Made, class Setting>
bool register_options(std::string_view name, typename OptionsReader<Made, Setting>::Pointer read);

// True for an interface whose options may have another metric than the TuneConfig.
template <class Made>
inline constexpr bool kMayHaveAnotherMetric = false;
// Completes the metric of options from the TuneConfig's.
void complete_metric(const TunerOptions& options, Objective& metric, std::optional<Mode>& mode);
// Does so the other way around, too.
void share_metric(TunerOptions& options, Objective& metric, std::optional<Mode>& mode);
void check_metric(const TunerOptions& options, const Objective& metric, const std::optional<Mode>& mode,
                  Faults& faults);

template <class T>
concept WithMetric = requires(T& options) {
  { options.metric } -> std::same_as<Objective&>;
  { options.mode } -> std::same_as<std::optional<Mode>&>;
};

template <class T, class Made, class Setting>
concept MakesA = std::is_class_v<T> && requires(const T& options, const Setting& setting) {
  { options.make(setting) } -> std::convertible_to<std::unique_ptr<Made>>;
};

template <class Made, class Setting, class T>
class HeldOptionsOf final : public HeldOptions<Made, Setting> {
  using Base = HeldOptions<Made, Setting>;

 public:
  explicit HeldOptionsOf(T options) : options_(std::move(options)) {}

  static std::shared_ptr<const Base> read(const Stored& stored) {
    T options{};
    if constexpr (ReadInOwnForm<T>) {
      read_stored(options, stored);
    } else {
      cadre::detail::members_from_stored(options, stored, {"type"});
    }
    return std::make_shared<HeldOptionsOf>(std::move(options));
  }
  // True: the type is known from now on.
  static bool known();
  static const bool is_known;  // known() is called when the program begins

  const T& options() const { return options_; }
  T& options() { return options_; }
  std::string_view name() const override { return kStoredName<T>; }
  Value stored() const override {
    Dict entries{{"type", name()}};
    const Value members = to_stored(options_);
    entries.insert(entries.end(), members.dict().begin(), members.dict().end());
    return entries;
  }
  std::shared_ptr<const Base> completed(TunerOptions& options, std::vector<std::string>& notes) const override {
    T own = options_;
    if constexpr (WithMetric<T> && kMayHaveAnotherMetric<Made>) complete_metric(options, own.metric, own.mode);
    if constexpr (WithMetric<T> && !kMayHaveAnotherMetric<Made>) share_metric(options, own.metric, own.mode);
    if constexpr (requires { own.complete(options, notes); }) own.complete(options, notes);
    return std::make_shared<HeldOptionsOf>(std::move(own));
  }
  std::shared_ptr<const Base> taking_over(const Base& stored) const override {
    T own = options_;
    if constexpr (requires { own.take_over(own); }) {
      if (stored.name() == name()) own.take_over(static_cast<const HeldOptionsOf&>(stored).options_);
    }
    return std::make_shared<HeldOptionsOf>(std::move(own));
  }
  void check(const TunerOptions& options, Faults& faults) const override {
    if constexpr (WithMetric<T> && !kMayHaveAnotherMetric<Made>)
      check_metric(options, options_.metric, options_.mode, faults);
    if constexpr (requires { options_.check(options, faults); }) options_.check(options, faults);
  }
  std::unique_ptr<Made> make(const Setting& setting) const override { return options_.make(setting); }
  typename Made::Traits traits() const override {
    if constexpr (requires { options_.traits(); }) {
      return options_.traits();
    } else {
      return {};
    }
  }

  std::vector<std::pair<std::string, Config>> later_configs(const Config& first) const override {
    if constexpr (requires { options_.later_configs(first); }) {
      return options_.later_configs(first);
    } else {
      return {};
    }
  }

 private:
  T options_;
};

// Not in the class, where an explicit instantiation elsewhere would not keep them from being compiled.
template <class Made, class Setting, class T>
bool HeldOptionsOf<Made, Setting, T>::known() {
  static const bool done = register_options<Made, Setting>(kStoredName<T>, &read);
  return done;
}

template <class Made, class Setting, class T>
const bool HeldOptionsOf<Made, Setting, T>::is_known = HeldOptionsOf::known();

}  // namespace detail

/// Options from which a Made, such as a Scheduler, is made; of any type that has the functions that its header
/// describes. A value: changing a copy changes no other.
template <class Made, class Setting>
class OptionsOf {
 public:
  /// Holds nothing; a TuneConfig then uses the default.
  OptionsOf() = default;
  /// Holds options.
  template <class T>
    requires(!std::same_as<T, OptionsOf> && detail::MakesA<T, Made, Setting>)
  OptionsOf(T options) : held_(std::make_shared<detail::HeldOptionsOf<Made, Setting, T>>(std::move(options))) {
    static_cast<void>(detail::HeldOptionsOf<Made, Setting, T>::is_known);
  }
  /// \cond a mistake, which does not compile
  template <class T>
    requires(!std::same_as<T, OptionsOf> && !detail::MakesA<T, Made, Setting> && std::is_class_v<T> &&
             !std::is_base_of_v<cadre::detail::BaseStandIn, T> &&
             !std::convertible_to<const T&, std::shared_ptr<const detail::HeldOptions<Made, Setting>>>)
  CADRE_MISTAKE(
      "options of a scheduler, searcher or stopper have a function make() const that returns it: see "
      "cadre/tune/scheduler.h")
  OptionsOf(const T& options);
  /// \endcond
  /// Holds options that were read; called by Cadre only.
  explicit OptionsOf(std::shared_ptr<const detail::HeldOptions<Made, Setting>> held) : held_(std::move(held)) {}

  /// Returns true if it holds nothing; the functions below then must not be called, except get_if().
  bool empty() const { return held_ == nullptr; }
  /// Returns the name of the options' type: "PopulationBasedTraining".
  std::string_view name() const { return held_->name(); }
  /// Returns the options if they are of type T, and nullptr otherwise.
  template <class T>
  const T* get_if() const {
    using Held = detail::HeldOptionsOf<Made, Setting, T>;
    const bool is_one = Held::is_known && held_ != nullptr && held_->name() == kStoredName<T>;
    return is_one ? &static_cast<const Held&>(*held_).options() : nullptr;
  }
  /// Returns the options, which must be of type T. Throws InvalidArgument if they are not.
  template <class T>
  const T& get() const {
    if (const T* options = get_if<T>()) return *options;
    throw InvalidArgument("the options are of type " + std::string(empty() ? "none" : name()) + ", and not " +
                          std::string(kStoredName<T>));
  }
  /// Returns the options, which must be of type T, to change them. Throws InvalidArgument if they are not.
  template <class T>
  T& get() {
    const T* options = &std::as_const(*this).template get<T>();
    auto own = std::make_shared<detail::HeldOptionsOf<Made, Setting, T>>(*options);
    held_ = own;
    return own->options();
  }
  /// Returns what the options describe. They must be good: a Tuner checks them.
  std::unique_ptr<Made> make(const Setting& setting) const { return held_->make(setting); }

  /// Returns true if both hold options of the same type whose stored members are equal, or both hold nothing.
  friend bool operator==(const OptionsOf& a, const OptionsOf& b) {
    if (a.empty() || b.empty()) return a.empty() && b.empty();
    return a.held_ == b.held_ || a.held_->stored() == b.held_->stored();
  }

  /// Returns the options without their type, for Cadre.
  const detail::HeldOptions<Made, Setting>& held() const { return *held_; }

 private:
  std::shared_ptr<const detail::HeldOptions<Made, Setting>> held_;
};

/// \cond forms for cadre/stored.h
template <class Made, class Setting>
Value stored_form(const OptionsOf<Made, Setting>& options);
template <class Made, class Setting>
void read_stored(OptionsOf<Made, Setting>& options, const Stored& stored);
/// \endcond

}  // namespace cadre::tune
