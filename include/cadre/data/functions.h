/// \file
/// Functions and classes of the program that a dataset calls. Like a trainable, each is found by its name, which is
/// registered when the program is loaded: in every process of the program, and in later runs of it.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cadre/data/batch.h"
#include "cadre/function.h"
#include "cadre/value.h"

namespace cadre::data {

/// A class whose objects are called with batches, by name. Made by actor<T>().
struct Actor {
  std::string name = {};                          ///< name of the class, without its namespaces
  HostFunction host_function = {};                ///< set if it is one of a host, not of the program: cadre/host.h
  bool operator==(const Actor&) const = default;  ///< compares the class
};

/// The place of an execution in a training. Functions get it as their last argument, and classes as the last one of
/// their constructor, if they have a parameter for it. With the numbers of the rows (with_row_numbers) it says all that
/// changes at random should depend on:
///
///     Batch augment(const Batch& batch, const Config& config, const CallContext& context) {
///       for (const std::uint64_t row : batch.to_vector<std::uint64_t>("row")) {
///         KeyedRandom random =
///             KeyedRandom::of_example(config.get<std::uint64_t>("seed"), context.epoch, row);
///         ...
struct CallContext {
  /// Epoch of the shard whose loop it is (Shard::epoch), or IterBatchesOptions::epoch of a loop over a Dataset; 0 in
  /// other executions.
  std::uint64_t epoch = 0;
};

/// A function of batches, as it is called: in one thread at a time.
using BatchCall = std::function<Batch(const Batch&)>;
/// Makes a host's function or object callable, from HostFunction::value.
using MakeBatchCall = BatchCall (*)(const Value& value, const CallContext& context);
/// Sets what makes functions of the host (cadre/host.h) callable: those in BatchFunction, RowFunction, RowPredicate,
/// FlatMapFunction and Actor. All of these are called with batches, and a function of rows returns a batch with a row
/// for each row that it gets. A host that has such functions calls this before it uses datasets, in every process.
/// `make` is called in the process and thread of a worker, before its first batch: an Actor's object is made by it,
/// once for each worker.
void set_host_functions(MakeBatchCall make);
/// Sets a function that a thread calls which waits for rows, about every tenth of a second, and between rows. What it
/// throws ends the execution. A host whose interpreter notes signals and handles them later checks for them there.
/// nullptr: none.
void set_interrupt_check(void (*check)());

namespace detail {

// A factory that makes the callable from the operator's config, in the thread and process that calls it.
using BatchCallFactory = BatchCall (*)(const Config&, const CallContext&);

// Registers a factory; the kind ("function", "class", "row function", "row predicate", "function of row to rows") is
// part of the name's key.
bool register_batch_call(std::string_view kind, std::string_view name, BatchCallFactory make);
// Applies a row function to each row of a batch.
Batch map_rows(const Batch& batch, const std::function<Row(const Row&)>& function);
Batch filter_rows(const Batch& batch, const std::function<bool(const Row&)>& predicate);
Batch flat_map_rows(const Batch& batch, const std::function<std::vector<Row>(const Row&)>& function);

template <class F>
concept TakesBatch = std::is_invocable_r_v<Batch, F, const Batch&>;
template <class F>
concept TakesBatchAndConfig = std::is_invocable_r_v<Batch, F, const Batch&, const Config&>;
template <class F>
concept TakesBatchAndContext = std::is_invocable_r_v<Batch, F, const Batch&, const CallContext&>;
template <class F>
concept TakesBatchConfigAndContext = std::is_invocable_r_v<Batch, F, const Batch&, const Config&, const CallContext&>;
template <class F>
concept MapsBatches =
    TakesBatch<F> || TakesBatchAndConfig<F> || TakesBatchAndContext<F> || TakesBatchConfigAndContext<F>;
// A function of rows that returns exactly Result.
template <class F, class Result>
concept TakesRow = requires { requires std::same_as<std::invoke_result_t<F, const Row&>, Result>; };
template <class F, class Result>
concept TakesRowAndContext =
    requires { requires std::same_as<std::invoke_result_t<F, const Row&, const CallContext&>, Result>; };
template <class F>
concept MapsRows = TakesRow<F, Row> || TakesRowAndContext<F, Row>;
template <class F>
concept MapsRowToRows = TakesRow<F, std::vector<Row>> || TakesRowAndContext<F, std::vector<Row>>;
template <class F>
concept FiltersRows = TakesRow<F, bool> || TakesRowAndContext<F, bool>;
template <class T>
concept MadeForCalls =
    std::constructible_from<T, const Config&, const CallContext&> || std::constructible_from<T, const CallContext&> ||
    std::constructible_from<T, const Config&> || std::default_initializable<T>;

// Returns a function of a row that calls F.
template <auto F, class Result>
std::function<Result(const Row&)> row_call(const CallContext& context) {
  if constexpr (TakesRowAndContext<decltype(F), Result>) {
    return [context](const Row& row) -> Result { return F(row, context); };
  } else {
    return [](const Row& row) -> Result { return F(row); };
  }
}

template <auto F>
struct FunctionRegistration {
  static BatchCall make(const Config& config, const CallContext& context) {
    if constexpr (TakesBatchConfigAndContext<decltype(F)>) {
      return [config, context](const Batch& batch) { return F(batch, config, context); };
    } else if constexpr (TakesBatchAndContext<decltype(F)>) {
      return [context](const Batch& batch) { return F(batch, context); };
    } else if constexpr (TakesBatchAndConfig<decltype(F)>) {
      return [config](const Batch& batch) { return F(batch, config); };
    } else {
      return [](const Batch& batch) { return F(batch); };
    }
  }
  static inline const bool done = register_batch_call("function", cadre::detail::function_name<F>(), &make);
};

template <auto F>
struct RowFunctionRegistration {
  static BatchCall make(const Config&, const CallContext& context) {
    return [call = row_call<F, Row>(context)](const Batch& batch) { return map_rows(batch, call); };
  }
  static inline const bool done = register_batch_call("row function", cadre::detail::function_name<F>(), &make);
};

template <auto F>
struct FlatMapRegistration {
  static BatchCall make(const Config&, const CallContext& context) {
    return [call = row_call<F, std::vector<Row>>(context)](const Batch& batch) { return flat_map_rows(batch, call); };
  }
  static inline const bool done =
      register_batch_call("function of row to rows", cadre::detail::function_name<F>(), &make);
};

template <auto F>
struct RowPredicateRegistration {
  static BatchCall make(const Config&, const CallContext& context) {
    return [call = row_call<F, bool>(context)](const Batch& batch) { return filter_rows(batch, call); };
  }
  static inline const bool done = register_batch_call("row predicate", cadre::detail::function_name<F>(), &make);
};

template <class T>
struct ActorRegistration {
  static BatchCall make(const Config& config, const CallContext& context) {
    std::shared_ptr<T> object;
    if constexpr (std::constructible_from<T, const Config&, const CallContext&>) {
      object = std::make_shared<T>(config, context);
    } else if constexpr (std::constructible_from<T, const CallContext&>) {
      object = std::make_shared<T>(context);
    } else if constexpr (std::constructible_from<T, const Config&>) {
      object = std::make_shared<T>(config);
    } else {
      object = std::make_shared<T>();
    }
    return [object](const Batch& batch) -> Batch { return (*object)(batch); };
  }
  static inline const bool done = register_batch_call("class", cadre::detail::type_name<T>(), &make);
};

}  // namespace detail

/// A function of batches, by name.
struct BatchFunction {
  BatchFunction() = default;  ///< names no function
  /// Names a function by text; the program must give it as fn<f> somewhere.
  explicit BatchFunction(std::string function) : name(std::move(function)) {}
  /// Names a function: Batch f(const Batch&), or Batch f(const Batch&, const Config&), which also gets
  /// MapBatchesOptions::config. Either may have a last parameter const CallContext&.
  template <auto F>
    requires detail::MapsBatches<decltype(F)>
  BatchFunction(Function<F>) : name(cadre::detail::registered_name<F, detail::FunctionRegistration<F>>()) {}
  /// \cond a mistake, which does not compile
  template <auto F>
    requires(!detail::MapsBatches<decltype(F)>)
  CADRE_MISTAKE("a function for map_batches is Batch f(const Batch&) or Batch f(const Batch&, const Config&)")
  BatchFunction(Function<F>);
  /// \endcond

  std::string name = {};            ///< name of the function, without its namespaces
  HostFunction host_function = {};  ///< set if it is one of a host, not of the program: cadre/host.h
  bool operator==(const BatchFunction&) const = default;  ///< compares the function
};
/// A function of rows, by name.
struct RowFunction {
  RowFunction() = default;  ///< names no function
  /// Names a function by text; the program must give it as fn<f> somewhere.
  explicit RowFunction(std::string function) : name(std::move(function)) {}
  /// Names a function: Row f(const Row&), or Row f(const Row&, const CallContext&).
  template <auto F>
    requires detail::MapsRows<decltype(F)>
  RowFunction(Function<F>) : name(cadre::detail::registered_name<F, detail::RowFunctionRegistration<F>>()) {}
  /// \cond a mistake, which does not compile
  template <auto F>
    requires(!detail::MapsRows<decltype(F)>)
  CADRE_MISTAKE("a function for map is Row f(const Row&); for batches, write map_batches")
  RowFunction(Function<F>);
  /// \endcond

  std::string name = {};            ///< name of the function, without its namespaces
  HostFunction host_function = {};  ///< set if it is one of a host, not of the program: cadre/host.h
  bool operator==(const RowFunction&) const = default;  ///< compares the function
};
/// A function that makes any number of rows of one, by name.
struct FlatMapFunction {
  FlatMapFunction() = default;  ///< names no function
  /// Names a function by text; the program must give it as fn<f> somewhere.
  explicit FlatMapFunction(std::string function) : name(std::move(function)) {}
  /// Names a function: std::vector<Row> f(const Row&), which may also have a parameter const CallContext&.
  template <auto F>
    requires detail::MapsRowToRows<decltype(F)>
  FlatMapFunction(Function<F>) : name(cadre::detail::registered_name<F, detail::FlatMapRegistration<F>>()) {}
  /// \cond a mistake, which does not compile
  template <auto F>
    requires(!detail::MapsRowToRows<decltype(F)>)
  CADRE_MISTAKE("a function for flat_map is std::vector<Row> f(const Row&)")
  FlatMapFunction(Function<F>);
  /// \endcond

  std::string name = {};            ///< name of the function, without its namespaces
  HostFunction host_function = {};  ///< set if it is one of a host, not of the program: cadre/host.h
  bool operator==(const FlatMapFunction&) const = default;  ///< compares the function
};
/// A condition on rows, by name.
struct RowPredicate {
  RowPredicate() = default;  ///< names no function
  /// Names a function by text; the program must give it as fn<f> somewhere.
  explicit RowPredicate(std::string function) : name(std::move(function)) {}
  /// Names a function: bool f(const Row&), or bool f(const Row&, const CallContext&).
  template <auto F>
    requires detail::FiltersRows<decltype(F)>
  RowPredicate(Function<F>) : name(cadre::detail::registered_name<F, detail::RowPredicateRegistration<F>>()) {}
  /// \cond a mistake, which does not compile
  template <auto F>
    requires(!detail::FiltersRows<decltype(F)>)
  CADRE_MISTAKE("a function for filter is bool f(const Row&)")
  RowPredicate(Function<F>);
  /// \endcond

  std::string name = {};            ///< name of the function, without its namespaces
  HostFunction host_function = {};  ///< set if it is one of a host, not of the program: cadre/host.h
  bool operator==(const RowPredicate&) const = default;  ///< compares the function
};

/// Returns the class T for map_batches. An object of it is made once in each worker, from
/// MapBatchesOptions::constructor_config if it has a constructor of a const Config&, which may have a last parameter
/// const CallContext&, and called as Batch operator()(const Batch&), by one thread at a time. It is destroyed at the
/// end; a worker process that is not needed any more because its execution failed or was abandoned is killed.
template <class T>
  requires detail::MadeForCalls<T> && std::is_invocable_r_v<Batch, T&, const Batch&>
Actor actor() {
  static_assert(cadre::detail::is_identifier(cadre::detail::type_name<T>()), "the class has no name to find it by");
  static_cast<void>(detail::ActorRegistration<T>::done);
  return {std::string(cadre::detail::type_name<T>())};
}
/// \cond a mistake, which does not compile
template <class T>
  requires(!detail::MadeForCalls<T>) || (!std::is_invocable_r_v<Batch, T&, const Batch&>)
CADRE_MISTAKE("a class for map_batches has Batch operator()(const Batch&), and is made from nothing or a const Config&")
Actor actor();
/// \endcond

}  // namespace cadre::data
