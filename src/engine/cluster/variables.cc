#include "engine/cluster/variables.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace cadre::engine::cluster {

Variables own_variables() {
  Variables variables;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != text.npos) variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

bool is_of_this_machine(std::string_view name) {
  static constexpr std::array<std::string_view, 20> names = {"CUDA_VISIBLE_DEVICES",
                                                             "DBUS_SESSION_BUS_ADDRESS",
                                                             "DISPLAY",
                                                             "HOST",
                                                             "HOSTNAME",
                                                             "NVIDIA_VISIBLE_DEVICES",
                                                             "OLDPWD",
                                                             "PWD",
                                                             "SHLVL",
                                                             "STY",
                                                             "TEMP",
                                                             "TERM",
                                                             "TMP",
                                                             "TMPDIR",
                                                             "TMUX",
                                                             "TTY",
                                                             "WAYLAND_DISPLAY",
                                                             "WINDOWID",
                                                             "XAUTHORITY",
                                                             "_"};
  static constexpr std::array<std::string_view, 11> prefixes = {"KUBERNETES_", "LSB_",         "PBS_",        "PMI",
                                                                "RAY_",        "SBATCH_",      "SLURM",       "SRUN_",
                                                                "SSH_",        "XDG_RUNTIME_", "XDG_SESSION_"};
  return std::ranges::find(names, name) != names.end() ||
         std::ranges::any_of(prefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

std::vector<std::string> as_environment(const Variables& variables) {
  std::vector<std::string> environment;
  environment.reserve(variables.size());
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  return environment;
}

}  // namespace cadre::engine::cluster
