// The experiments that a dashboard shows, as it finds and reads them. The program `cadre` has the implementation.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cadre/value.h"

namespace cadre::dashboard {

struct Place {
  std::string location = {};  // the directory or URI of an experiment
  std::string name = {};      // for the list: relative to where it was looked for
};

struct Found {
  std::vector<Place> places = {};
  std::vector<std::string> faults = {};  // places that cannot be looked at, and why
};

struct Reading {
  Dict entry = {};                     // for the list; docs/formats.md, "The dashboard"
  std::optional<Value> document = {};  // of a report; "unreadable" if it cannot be read
  bool reads_on = false;               // another reading reads only what is new then, and costs less
};

struct Stamp {
  std::string text = {};   // differs once the experiment has changed
  double bytes = 0;        // that are read of it, about; 0: unknown
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
