// Interface through which a dashboard finds and reads experiments. The program `cadre` has the implementation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cadre/value.h"

namespace cadre::dashboard {

struct Place {
  std::string location = {};  // the directory or URI of an experiment
  std::string name = {};      // shown in the list: relative to the place that was searched
};

struct Found {
  std::vector<Place> places = {};
  std::vector<std::string> faults = {};  // places that cannot be searched, and why
};

struct Reading {
  Dict entry = {};                     // its row in the list; docs/formats.md, "The dashboard"
  std::optional<Value> document = {};  // as in a report; of the kind "unreadable" if the experiment cannot be read
  bool reads_on = false;               // the next reading reads only what is new then, and costs less
};

struct Stamp {
  std::string text = {};   // differs from the last one if the experiment has changed
  double bytes = 0;        // that read() reads of it, approximately; 0: unknown
  bool is_running = true;  // a program may be adding to it
};

// Used by one thread. Functions throw no cadre::Error.
class Experiments {
 public:
  virtual ~Experiments() = default;
  virtual Found find() = 0;
  // Costs little beside read().
  virtual Stamp stamp(const Place& place) = 0;
  // Returns true if looking at it costs requests to another machine.
  virtual bool is_remote(const Place& place) = 0;
  virtual Reading read(const Place& place, bool with_document) = 0;
};

}  // namespace cadre::dashboard
