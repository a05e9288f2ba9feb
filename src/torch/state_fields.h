// The members of an object by the names that Python's state_dict() has for them: one list of them writes and reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cadre/value.h"

namespace cadre::optim::detail {

class StateFields;

// Something that has such a list.
class WithState {
 public:
  virtual ~WithState() = default;
  virtual void visit(StateFields& fields) = 0;
};

// Names that begin with "_" may be missing in a state; all others must be there, and no others.
class StateFields {
 public:
  virtual ~StateFields() = default;
  virtual void field(const char* name, bool& value) = 0;
  virtual void field(const char* name, std::int64_t& value) = 0;
  virtual void field(const char* name, double& value) = 0;
  virtual void field(const char* name, std::string& value) = 0;
  virtual void field(const char* name, std::vector<double>& value) = 0;
  virtual void field(const char* name, std::vector<std::int64_t>& value) = 0;
  virtual void field(const char* name, Value& value) = 0;
  virtual void field(const char* name, const std::vector<WithState*>& parts) = 0;
};

Dict write_state(WithState& object);
// Throws InvalidArgument with all faults; the object may have changed then. `what`: "a StepLR".
void read_state(const Dict& state, const std::string& what, WithState& object);

}  // namespace cadre::optim::detail
