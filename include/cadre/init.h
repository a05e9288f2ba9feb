/// \file
/// Initialisation of Cadre in main: prepares this process to start workers.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "cadre/cluster.h"

namespace cadre {

class Host;

/// Options of cadre::init. Amounts are finite and 0 or more.
struct InitOptions {
  /// Number of CPUs that this machine offers to workers. Default: the CPUs that this process may use.
  std::optional<double> num_cpus = {};
  /// Number of GPUs that this machine offers to workers. Default: the GPUs in CUDA_VISIBLE_DEVICES or, if that is not
  /// set, those that the NVIDIA driver reports.
  std::optional<double> num_gpus = {};
  /// Custom resources and their amounts, such as {"license", 2}. Default: none.
  std::map<std::string, double> resources = {};
  /// Kind of this machine's GPUs, for trials, workers and validators that ask for one; or the kind of each,
  /// "A100,A10G", see Resources::accelerator_type. Default: derived from the models that the NVIDIA driver reports, the
  /// first word with a digit ("H100" of "NVIDIA H100 80GB HBM3"). If there are several kinds, CUDA_VISIBLE_DEVICES must
  /// not be set, or have UUIDs, or numbers with CUDA_DEVICE_ORDER=PCI_BUS_ID; otherwise there is no default.
  std::optional<std::string> accelerator_type = {};
  /// Labels of this machine, such as {"zone", "eu"}; see Resources::labels. Default: none.
  std::map<std::string, std::string> labels = {};
  /// Function that runs once in the fork server before any worker exists, so that all workers share the data that it
  /// loads into global variables: a data set, or a model. The server has one OpenMP thread, so that libtorch computes
  /// in it without starting other threads; each worker then has as many as it has CPUs. The function must not start a
  /// thread itself, and must not use a GPU, because forked processes could not continue to use it; on a machine with a
  /// GPU, libtorch's backward() does. An exception in it ends the server; fit() then reports it. Default: none.
  void (*preload)() = nullptr;
  /// The host, for a program that is one (cadre/host.h): the fork server is then executed by its command, instead of
  /// forked or executed as this program is. Must live until the program ends. Default: none.
  Host* host = nullptr;
  /// The cluster on whose nodes trials, workers and validators run; nothing runs on this machine then but the
  /// controller. Default: the environment variable CADRE_CLUSTER, which has the name of an engine ("slurm") or the path
  /// of a JSON file with the members of a ClusterConfig; without it, this machine alone.
  std::optional<ClusterConfig> cluster = {};
};

/// Starts the fork server from which all workers are forked, and returns at once; in a worker it never returns, nor in
/// an agent (cadre/cluster.h). Call it at the beginning of main, from the main thread, before any thread or library
/// state exists that a forked process could not use (if threads are already running, the program is executed anew for
/// the server). State that the program sets before init(), for example from its command line, is visible to workers and
/// `preload`. State that it sets between init() and fit() is not: pass it to workers in the config. `argc` and `argv`
/// are those of main; the arguments are not interpreted. The process's limit of open files is raised as far as
/// permitted, because each live trial needs several. Workers have a handler for SIGINT, SIGTERM and SIGHUP from other
/// processes: they continue if all processes of the program receive the signal, and are ended by it, a second later, if
/// only they do. A handler that the training function sets replaces it; programs that it executes have the default.
///
/// From here on an uncaught exception ends the program with a message and an exit code instead of a core dump:
/// "<program>: <what>" on standard error, and 130 for an Interrupted by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP, and 1
/// for every other std::exception. Standard output is flushed; the stack is not unwound, so destructors of main do not
/// run. Crashes, failed assertions and exceptions that are not a std::exception end the program as before. The handler
/// is set with std::set_terminate: one that the program set before init() is kept, and one that it sets later replaces
/// Cadre's. Workers handle exceptions themselves.
///
/// Throws InvalidArgument if it is called twice without shutdown() in between, if two trainables have the same name, or
/// for an invalid amount; EngineError if the process cannot fork. After an error nothing is running.
void init(int argc, char** argv, const InitOptions& options = {});

/// Ends the fork server, and waits until it is gone; then init() may be called again, with other options. For programs
/// that run one after the other in one process, such as tests and notebooks; no other program needs it. Does nothing if
/// init() was not called. Call it in the main thread, and not while a dataset is read. Throws InvalidArgument while a
/// Tuner or a Trainer runs.
void shutdown();

}  // namespace cadre
