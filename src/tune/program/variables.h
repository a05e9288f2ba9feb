// The command, environment and files of a trial's program.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tune/program/placeholders.h"
#include "tune/session.h"

namespace cadre::tune {

// Variables of a program's environment, which are also placeholders.
namespace variable {
inline constexpr std::string_view report_fd = "CADRE_REPORT_FD";
inline constexpr std::string_view checkpoint_in = "CADRE_CHECKPOINT_IN";
inline constexpr std::string_view checkpoint_out = "CADRE_CHECKPOINT_OUT";
inline constexpr std::string_view config_file = "CADRE_CONFIG_FILE";
inline constexpr std::string_view experiment = "CADRE_EXPERIMENT";
inline constexpr std::string_view trial_id = "CADRE_TRIAL_ID";
inline constexpr std::string_view trial_name = "CADRE_TRIAL_NAME";
inline constexpr std::string_view trial_dir = "CADRE_TRIAL_DIR";
inline constexpr std::string_view seed = "CADRE_SEED";
inline constexpr std::array all{report_fd, checkpoint_in, checkpoint_out, config_file, experiment,
                                trial_id,  trial_name,    trial_dir,      seed};
}  // namespace variable

class ProgramVariables {
 public:
  // The session must outlive this object.
  explicit ProgramVariables(const Session& session);

  // Makes the folder of the program's files, without what a former attempt has left.
  void make_files() const;

  // With values in the place of placeholders. Each throws InvalidArgument that names a placeholder without a value in
  // this config, or whose value no argument can carry.
  std::vector<std::string> command() const;
  std::vector<std::string> environment() const;
  std::string working_directory() const;
  std::filesystem::path metrics_file() const;

  std::filesystem::path in_working_directory(const std::filesystem::path& path) const;
  std::filesystem::path checkpoint_out() const;

 private:
  std::string fill(std::string_view text) const;
  std::string value_of(const std::string& name) const;

  const TrialAssignment& assignment_;
  std::filesystem::path folder_;
  std::map<std::string, std::string, std::less<>> variables_ = {};
};

}  // namespace cadre::tune
