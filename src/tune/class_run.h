// A trainable class in its worker.
#pragma once

#include <memory>
#include <string>

#include "cadre/tune/class_trainable.h"

namespace cadre::tune {

class Session;

// Drives an object of a trainable class from its setup to its end. Ends by an exception: StopWorker, Declined, or one
// of the user's code.
[[noreturn]] void run_class(Session& session, std::unique_ptr<ClassTrainable> object, const std::string& name,
                            TrainableMethods methods);

}  // namespace cadre::tune
