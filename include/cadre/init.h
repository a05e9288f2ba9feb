/// \file
/// The first line of main: prepares this process to start workers.
#pragma once

#include <map>
#include <optional>
#include <string>

namespace cadre {

/// What cadre::init may be told. Amounts are finite and 0 or more.
struct InitOptions {
  /// CPUs that this machine offers to trials. Default: those that this process may run on.
  std::optional<double> num_cpus = {};
  /// GPUs that this machine offers to trials. Default: those of CUDA_VISIBLE_DEVICES or, where that is not set, those
  /// that the NVIDIA driver shows.
  std::optional<double> num_gpus = {};
  /// Custom resources and their amounts, such as {"license", 2}. Default: none.
  std::map<std::string, double> resources = {};
  /// The kind of this machine's GPUs, for those who ask for one. Default: that of the model that the NVIDIA driver
  /// shows, its first word with a digit ("H100" of "NVIDIA H100 80GB HBM3"); none where there are GPUs of several
  /// kinds.
  std::optional<std::string> accelerator_type = {};
  /// Labels of this machine, such as {"zone", "eu"}; see Resources::labels. Default: none.
  std::map<std::string, std::string> labels = {};
  /// Runs once in the fork server before any worker exists, so that all workers share what it loads into global
  /// variables: a data set, or a model. It has one OpenMP thread, so that libtorch computes in it without starting
  /// others; each worker then has as many as it has CPUs. It must not start a thread itself, and not use a GPU, which
  /// no forked process could go on with. An exception in it ends the server; fit() then says so. Default: nothing runs.
  void (*preload)() = nullptr;
};

/// Starts the fork server from which all workers are forked, and returns at once; in a worker it never returns. Call it
/// at the beginning of main, from the main thread, before any thread or library state exists that a forked process
/// could not use (when threads are running already, the program is executed anew for the server). Workers and `preload`
/// see what the program has set before, from its command line for example. What it makes between init() and fit() they
/// do not see: it reaches them through the config. `argv` is that of main; its arguments are not looked at. The
/// process's limit of open files is raised as far as it may be, because each live trial takes a few. In workers SIGINT,
/// SIGTERM and SIGHUP from other processes have a handler: they go on when all processes of the program get the signal,
/// and end by it, a second later, when only they do. A handler that the training function sets takes its place;
/// programs that it executes have the default.
///
/// From here on an exception that nobody catches ends the program with a message and an exit code instead of a core
/// dump: "<program>: <what>" on standard error, and 130 where it is an Interrupted by Ctrl-C, 143 by SIGTERM, 129 by
/// SIGHUP, and 1 for every other std::exception. Standard output is flushed; the stack is not unwound, so destructors
/// of main do not run. Crashes, failed assertions and exceptions that are no std::exception end it as before. It is a
/// handler set with std::set_terminate: one that the program sets before init() stays, and one that it sets later takes
/// its place. Workers keep their own ways.
///
/// Throws InvalidArgument when it is called twice, when two trainables have one name, or for a bad amount; EngineError
/// when the process cannot fork. Nothing is running then.
void init(int argc, char** argv, const InitOptions& options = {});

}  // namespace cadre
