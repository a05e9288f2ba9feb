// The files of a model in parts: {"parameters": {name: {"shape", "begin", "values"}}, "buffers": {name: tensor} of
// rank 0, "backward_passes", "optimizer": its state_dict, "optimizer_parameters": [[name, …], …]}.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "torch/distributed/flat_layout.h"
#include "torch/distributed/shard_files.h"
#include "torch/faults.h"
#include "torch/pickle_value.h"

namespace cadre::distributed {

// The elements of a parameter that this rank has.
struct ParameterPart {
  std::vector<std::int64_t> shape;  // of the whole
  ElementRange range;
  torch::Tensor values;  // a vector
};
using ParameterParts = std::map<std::string, ParameterPart>;
using NamesByGroup = std::vector<std::vector<std::string>>;  // of an optimizer's parameters

pt::Value to_value(const ParameterParts& parts);
pt::Value to_value(const NamesByGroup& names);

// Reads this rank's parts of a model and an optimizer from the files of all ranks.
class PartsReader {
 public:
  // Reads the state of an optimizer, too, if there are names.
  PartsReader(ParameterParts parts, std::optional<NamesByGroup> optimizer_names);

  // Reads a file; those of all ranks one after the other. Throws InvalidArgument for one that is of another kind, or
  // that does not belong to those before it.
  void read(const Shard& shard);

  // Adds what no file has, and what they have and the model has not.
  void add_faults(pt::Faults& faults) const;
  const torch::Tensor& values_of(const std::string& parameter) const { return values_.at(parameter).values; }
  const torch::Tensor* buffer(const std::string& name) const;  // nullptr: there is none
  std::int64_t backward_passes() const { return backward_passes_.value_or(0); }
  // Returns the optimizer's state as a file of this rank would have it. `last`: one of the files, for the options.
  pt::Value optimizer_state(const Shard& last) const;

 private:
  // Elements of a parameter, or of a state that an optimizer has for each element of one.
  struct Elements {
    Elements(ElementRange wanted, const torch::TensorOptions& options);
    // Takes what is wanted of a row that begins at the parameter's element `begin`.
    void take(const torch::Tensor& row, std::int64_t begin);
    bool are_complete() const { return taken == wanted.size(); }

    ElementRange wanted;
    torch::Tensor values;
    std::int64_t taken = 0;
  };
  // A part in the file that is being read.
  struct Row {
    std::int64_t begin = 0;
    std::int64_t size = 0;
  };

  void read_parameter(const Shard& shard, const std::string& name, const pt::Value& entry);
  void read_states(const Shard& shard);
  void read_state(const std::string& parameter, const pt::Value& state);
  pt::Value state_of(const std::string& parameter) const;

  ParameterParts parts_;
  std::optional<NamesByGroup> optimizer_names_;
  std::map<std::string, Elements> values_;
  std::map<std::string, std::map<std::string, Elements>> states_;         // by parameter and field
  std::map<std::string, std::map<std::string, pt::Value>> other_fields_;  // such as the number of steps
  std::set<std::string> have_state_;
  pt::Value buffers_;
  std::optional<std::int64_t> backward_passes_;
  std::map<std::string, Row> rows_;           // by parameter
  std::map<std::string, std::int64_t> ends_;  // of what was read of each parameter
  std::set<std::string> seen_;                // names in the files
  std::set<std::string> refused_;             // for their shapes
  std::vector<std::string> mismatches_;
};

}  // namespace cadre::distributed
