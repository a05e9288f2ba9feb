#include "cadre/tune/class_trainable.h"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <utility>

#include "cadre/error.h"
#include "tune/class_run.h"
#include "tune/functions.h"
#include "tune/result_keys.h"
#include "tune/session.h"
#include "worker/entries.h"
#include "worker/worker.h"

namespace cadre::tune {
namespace fs = std::filesystem;

void ClassTrainable::setup(const Config&) {}
void ClassTrainable::save_checkpoint(const fs::path&) {}
void ClassTrainable::load_checkpoint(const fs::path&) {}
bool ClassTrainable::reset_config(const Config&) { return false; }

// Drives an object of a trainable class for the life of one worker.
class ClassRun {
 public:
  ClassRun(Session& session, std::unique_ptr<ClassTrainable> object, std::string name, TrainableMethods methods)
      : session_(session), object_(std::move(object)), name_(std::move(name)), methods_(methods) {}
  ClassRun(const ClassRun&) = delete;
  ClassRun& operator=(const ClassRun&) = delete;
  ~ClassRun();

  // Ends by an exception: StopWorker, Declined, or an exception of the user's code.
  [[noreturn]] void run();

 private:
  void take_config();
  void load();
  void step();
  void take_over();
  void save(const fs::path& directory) const;

  Session& session_;
  std::unique_ptr<ClassTrainable> object_;
  std::string name_;
  TrainableMethods methods_;
};

ClassRun::~ClassRun() {
  try {
    object_->cleanup();
  } catch (...) {
    std::fprintf(stderr, "cadre: cleanup() of %s failed: %s\n", name_.c_str(),
                 worker::describe_current_exception().c_str());
  }
}

void ClassRun::run() {
  session_.set_take_over([this] { take_over(); });
  take_config();
  object_->setup(object_->get_config());
  load();
  for (;;) step();
}

void ClassRun::take_config() {
  object_->config_ = session_.assignment().config;
  object_->parameters_ = session_.assignment().parameters;
  object_->training_iteration_ = session_.training_iteration();
}

void ClassRun::load() {
  const std::optional<Checkpoint>& checkpoint = session_.latest_checkpoint();
  if (!checkpoint) return;
  if (!methods_.load_checkpoint)
    throw Error("the trial continues from the checkpoint " + checkpoint->path().string() + ", and " + name_ +
                " has no load_checkpoint()");
  object_->load_checkpoint(checkpoint->path());
}

void ClassRun::step() {
  const Metrics result = object_->step();
  object_->training_iteration_ = session_.training_iteration() + 1;  // the value in the result about to be reported
  if (methods_.save_checkpoint || is_true(result, SHOULD_CHECKPOINT)) {
    session_.report(result, [this](const fs::path& directory) { save(directory); });
  } else {
    session_.report(result);
  }
  object_->training_iteration_ = session_.training_iteration();
}

void ClassRun::take_over() {
  take_config();
  if (!object_->reset_config(object_->get_config())) throw worker::Declined{};
  load();
}

void ClassRun::save(const fs::path& directory) const {
  if (!methods_.save_checkpoint)
    throw Error("a result has " + std::string(SHOULD_CHECKPOINT) + ", and " + name_ + " has no save_checkpoint()");
  object_->save_checkpoint(directory);
  if (fs::is_empty(directory))
    throw Error("save_checkpoint() of " + name_ + " has written nothing into " + directory.string() +
                ": a checkpoint has at least one file");
}

void run_class(Session& session, std::unique_ptr<ClassTrainable> object, const std::string& name,
               TrainableMethods methods) {
  ClassRun(session, std::move(object), name, methods).run();
}

bool detail::register_class(std::string_view name, ClassFactory make, TrainableMethods methods) {
  trainable_types().add(name, {.methods = methods});
  return worker::register_entry(
      name, [make, name = std::string(name), methods](channel::WorkerEnd& controller, const Value& payload) {
        run_trial(controller, payload, [&](Session& session) { run_class(session, make(), name, methods); });
        return Value();
      });
}

}  // namespace cadre::tune
