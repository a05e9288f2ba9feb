// The C++ half of torch_object_test.py and torch_safetensors_test.py. `torch_object_tool put <checkpoint> <object>`
// puts the tensors of a checkpoint as a module's state and writes the object's bytes; `torch_object_tool load <object>
// <checkpoint> <new checkpoint>` loads the object into a module with the checkpoint's tensors and saves it as a new
// checkpoint. `write` and `read` do the same with files of safetensors.
#include <iostream>
#include <memory>
#include <string>

#include "base/file.h"
#include "cadre/object.h"
#include "cadre/torch.h"
#include "cadre/torch/safetensors.h"
#include "torch/pt_file.h"

namespace {

// A module that has all tensors of a checkpoint's "model" as buffers.
struct AnyTensors : torch::nn::Module {
  explicit AnyTensors(const std::string& file) {
    const cadre::pt::Value content = cadre::pt::read_file(file);
    const auto& items = content.find("model")->dict()->items;
    for (std::size_t i = 0; i < items.size(); i += 2)
      register_buffer(*items[i].get_if<std::string>(), *items[i + 1].get_if<torch::Tensor>());
  }
};

int put(const std::string& checkpoint, const std::string& file) {
  const cadre::ObjectRef ref = cadre::put(AnyTensors(checkpoint));
  cadre::base::write_file(file, cadre::get(ref).text());
  return 0;
}

// Loads the object into a copy of the tensors of `like`, which have other values.
int load(const std::string& file, const std::string& like, const std::string& checkpoint) {
  const cadre::ObjectRef ref = cadre::put(cadre::base::read_file(file));
  AnyTensors tensors(like);
  cadre::load_object(cadre::get(ref), tensors);
  cadre::save_state(checkpoint, tensors);
  return 0;
}

int write(const std::string& checkpoint, const std::string& file) {
  cadre::save_safetensors(file, AnyTensors(checkpoint));
  return 0;
}

int read(const std::string& file, const std::string& like, const std::string& checkpoint) {
  AnyTensors tensors(like);
  cadre::load_safetensors(file, tensors);
  cadre::save_state(checkpoint, tensors);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  try {
    if (command == "put" && argc == 4) return put(argv[2], argv[3]);
    if (command == "load" && argc == 5) return load(argv[2], argv[3], argv[4]);
    if (command == "write" && argc == 4) return write(argv[2], argv[3]);
    if (command == "read" && argc == 5) return read(argv[2], argv[3], argv[4]);
  } catch (const cadre::Error& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
  std::cerr << "usage: torch_object_tool put|write <checkpoint> <object> | load|read <object> <checkpoint> <new "
               "checkpoint>\n";
  return 2;
}
