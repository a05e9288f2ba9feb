// Converts requests of a user to a running experiment (control/requests.h) to its events.
#pragma once

#include "cadre/tune/tuner.h"
#include "tune/events.h"
#include "tune/experiment.h"

namespace cadre::tune {

// Their forms: what `cadre stop`, `pause`, `resume` and `enqueue` send.
Dict stop_request();
Dict stop_request(const std::string& trial_id);
Dict pause_request();
Dict resume_request();
Dict enqueue_request(const Config& values);

// Returns the event of a request; a pause that ends has not its time yet. Throws InvalidArgument if the experiment
// cannot do that now.
Event to_event(const Dict& request, const Experiment& experiment, const TunerOptions& options);

}  // namespace cadre::tune
