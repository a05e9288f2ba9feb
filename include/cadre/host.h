/// \file
/// Programs that load Cadre as a library and have functions of their own kind: interpreters of other languages.
///
/// A program in C++ names its functions (cadre/function.h), which all of its processes have. A host makes functions
/// when it runs, so it gives Cadre values from which its other processes, and later programs, can make them again:
/// HostFunction, in the place of a function of the program. A value often refers to an object (cadre/object.h), which
/// then becomes a file of the experiment; the file is all that a restore needs.
///
/// Cadre starts workers by forking a server. A host's process often cannot be forked, because it has threads, so the
/// server is another process of the host, which is executed:
///
///     driver                                    server (executed by init)             workers (forked from it)
///     init({..., .host = &host})      ────►     loads modules, then the same init,    host.after_fork()
///     Tuner(...).fit()                          which does not return there:          host.run(...)
///     shutdown()                                host.before_first_fork()              host.before_end()
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cadre/error.h"
#include "cadre/function.h"
#include "cadre/value.h"

namespace cadre {

namespace tune {
class ClassTrainable;
class Scheduler;
class Searcher;
struct SchedulerSetting;
struct SearcherSetting;
struct TrainableMethods;
}  // namespace tune

/// An exception of a host's function: what() is its whole description, a traceback for example. A long one keeps its
/// end: at most 64 KiB.
class HostError : public Error {
 public:
  using Error::Error;  ///< takes the description
};

/// Unwinds a function in a worker when its trial is to stop: thrown by tune::report and train::report. Not a
/// std::exception. A host passes it through its own frames, in whatever form its language needs.
struct StopWorker {};

/// A host. Set InitOptions::host to it, in the driver and in the server; it must live until the program ends.
class Host {
 public:
  virtual ~Host() = default;

  /// Returns the program and arguments that are executed for the fork server. The program must call init() with the
  /// same options, and this host, in its main thread, while it has no other thread. It finds everything else that it
  /// should know, such as what to load, in these arguments. Called by init() in the driver.
  virtual std::vector<std::string> server_command() = 0;

  /// Returns the program and arguments that are executed as the agent of a node (cadre/cluster.h). The program must
  /// call init() with the same options, and this host, which does not return. Called in the driver when nodes are
  /// requested. Default: returns none; then fit() cannot use a cluster.
  virtual std::vector<std::string> agent_command() { return {}; }

  /// Called once in the server, before its first fork. Default: does nothing.
  virtual void before_first_fork() {}
  /// Returns a descriptor that the server watches, by which workers may say what the server should load for those to
  /// come; below 0: none. Called by init(). Default: returns -1.
  virtual int server_input() { return -1; }
  /// Called in the server between two forks when server_input() can be read, or has an error. Workers are not started
  /// meanwhile; it must leave no other thread. If it throws, it is not called again. Default: does nothing.
  virtual void on_server_input() {}
  /// Called in each worker before everything else of the host's, in its main thread. Default: does nothing.
  virtual void after_fork() {}
  /// Called in each worker when its function has returned or thrown, and before the controller hears of that, for
  /// what a process does at its end: a worker ends by _exit(). Default: does nothing.
  virtual void before_end() {}

  /// Calls a function in the driver, in the thread of fit(), and returns its value. By kind of function, the arguments
  /// are those of a function of C++ (see fn), and the value has the form that is stored (docs/formats.md):
  ///   - tune::SampleFrom: the config; any value
  ///   - tune::ExploreFunction: the config; a config
  ///   - tune::FunctionStopper: the trial's id and the result; true or false. After each result and each end of a
  ///     trial it is also called without arguments: true ends the experiment
  ///   - tune::ResourceFunction: the config; a PlacementGroup
  virtual Value call(const HostFunction& function, List arguments) = 0;
  /// Returns a new searcher for tune::HostSearcher::host_function, in the driver. What cadre/tune/searcher.h says holds
  /// for it. Default: throws Error.
  virtual std::unique_ptr<tune::Searcher> make_searcher(const HostFunction& function,
                                                        const tune::SearcherSetting& setting);
  /// Returns a new scheduler for tune::HostScheduler::host_function, likewise (cadre/tune/scheduler.h).
  virtual std::unique_ptr<tune::Scheduler> make_scheduler(const HostFunction& function,
                                                          const tune::SchedulerSetting& setting);

  /// Prints lines for people, UTF-8, to what the program has in the place of standard output or, if `is_error`, of
  /// standard error, and returns true; returns false to have Cadre write to that itself, as a terminal needs. Empty
  /// lines only ask. Called in the driver, in the thread of fit(). Default: returns false.
  virtual bool print(std::string_view lines, bool is_error);

  /// Returns true if the host itself shows how fit() goes on, as a table in a notebook does: the console then says what
  /// it says with `verbose` 0. Called in the driver, in the thread of fit(), at its beginning. Default: returns false.
  virtual bool shows_progress() { return false; }

  /// Runs a function in a worker, in its main thread, from its begin to its end, and returns its value. The arguments
  /// by kind of function:
  ///   - tune::Trainable: the config and the parameters; the value is not used
  ///   - train::Loop: the config; the value of rank 0 is the run's
  ///   - train::Validator: the directory of the checkpoint and the config; metrics
  ///
  /// Functions of datasets, which get batches and no Values, are not called by it: see data::set_host_functions.
  virtual Value run(const HostFunction& function, List arguments) = 0;
  /// Called in a worker whose part in the library is not loaded there: that of libcadre_data, for functions of
  /// datasets. The host loads it. Called after after_fork(). Default: does nothing.
  virtual void load_missing() {}
  /// Returns the methods of a trainable class; by default those of a function. Called in the driver.
  virtual tune::TrainableMethods methods(const HostFunction& function);
  /// Returns an object of a trainable class, in a worker. Default: throws Error.
  virtual std::unique_ptr<tune::ClassTrainable> make_class(const HostFunction& function);
};

}  // namespace cadre
