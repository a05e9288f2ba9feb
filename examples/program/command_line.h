// The flags of the examples. CLI11 reads them; its header stays out of the programs, which take long enough to compile
// with libtorch's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace CLI {
class App;
}

namespace examples {

// Its variables are filled when it is parsed, and must live until then.
class CommandLine {
 public:
  explicit CommandLine(const std::string& description);
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
  ~CommandLine();

  // `name` is "--epochs"; the variable's value is the default.
  using Variable = std::variant<std::int64_t*, std::uint64_t*, double*, std::string*>;
  void option(const std::string& name, Variable variable, const std::string& description);
  // One of these texts.
  void choice(const std::string& name, std::string* variable, std::vector<std::string> texts,
              const std::string& description);
  void flag(const std::string& name, bool* variable, const std::string& description);
  // Called at the end of parse().
  void then(std::function<void()> call);

  // Returns the program's exit code where there is nothing more to do: after --help, and after what is wrong was said.
  std::optional<int> parse(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace examples
