// cadre completion and cadre man: what shells and man(1) know of the program, from the texts of --help.
#include <memory>

#include "cadre/error.h"
#include "cadre/version.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "cli/man_page.h"
#include "cli/output.h"

namespace cadre::cli {

void add_completion(Command& program) {
  const auto shell = std::make_shared<std::string>();
  Command command = program.add_command("completion", "Print a script that completes commands in a shell");
  command.option("shell", shell.get(), "bash, zsh or fish").one_of({"bash", "zsh", "fish"}).required();
  command.footer(
      "An installed Cadre brings them along. Else:\n"
      "  bash: source <(cadre completion bash)                in ~/.bashrc\n"
      "  zsh:  source <(cadre completion zsh)                 in ~/.zshrc, after compinit\n"
      "  fish: cadre completion fish > ~/.config/fish/completions/cadre.fish");
  command.on_call([shell, program] {
    const CommandText text = program.text();
    write_raw(*shell == "bash"  ? bash_completion(text)
              : *shell == "zsh" ? zsh_completion(text)
                                : fish_completion(text));
  });
}

void add_man(Command& program) {
  Command command = program.add_command("man", "Print the manual page, for man(1)");
  command.footer("An installed Cadre brings it along: man cadre. Else: man <(cadre man)");
  command.on_call([program] {
    write_raw(
        man_page(program.text(), "tunes programs, and looks at experiments", std::string("cadre ") + cadre::version()));
  });
}

}  // namespace cadre::cli
