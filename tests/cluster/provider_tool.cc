// Drives a provider by lines of text, for provider_test.py:
//
//   provider_tool steps|jobs|ray <experiment> <agent's program> <argument>...
//
// reads "request <id> <nodes> [all] [cpus=<n>] [gpus=<n>] [<option>=<value>]...", "release <id> [<ordinal>]", "claim
// <id>...", "look", and writes "queued <id> <reason>", "refused <id> <reason>", "ended <id> <ordinal, or all>
// <reason>", "limit <id> <ordinal, or all> <seconds left>". Ends with its standard input.
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>

#include "base/overload.h"
#include "engine/cluster/ray_actors.h"
#include "engine/cluster/slurm_jobs.h"
#include "engine/cluster/slurm_steps.h"
#include "engine/cluster/variables.h"

namespace {

using namespace cadre::engine::cluster;

void obey(Provider& provider, const AgentStart& start, const std::string& line) {
  std::istringstream words(line);
  std::string verb;
  std::uint64_t id = 0;
  words >> verb;
  if (verb == "request") {
    NodeRequest request;
    words >> request.id >> request.nodes;
    for (std::string word; words >> word;) {
      const std::size_t equals = word.find('=');
      if (word == "all") request.all_or_none = true;
      if (word.starts_with("cpus=")) {
        request.cpus = std::stod(word.substr(equals + 1));
      } else if (word.starts_with("gpus=")) {
        request.gpus = std::stoll(word.substr(equals + 1));
      } else if (equals != word.npos) {
        request.options[word.substr(0, equals)] = word.substr(equals + 1);
      }
    }
    provider.request(request, start);
  } else if (verb == "release") {
    std::int64_t ordinal = 0;
    words >> id;
    words >> ordinal ? provider.release(id, ordinal) : provider.release(id);
  } else if (verb == "claim") {
    std::vector<KeptRequest> kept;
    while (words >> id) kept.push_back({.request = {.id = id}});
    provider.claim(kept, {});
  } else if (verb == "look") {
    provider.look_soon();
  }
}

void print(const ProviderEvent& event) {
  std::visit(cadre::base::Overload{
                 [](const Queued& e) { fmt::print("queued {} {}\n", e.request, e.reason); },
                 [](const Refused& e) { fmt::print("refused {} {}\n", e.request, e.reason); },
                 [](const AgentEnded& e) {
                   fmt::print("ended {} {} {}\n", e.request, e.ordinal ? std::to_string(*e.ordinal) : "all", e.reason);
                 },
                 [](const NodeEnds& e) {
                   const std::chrono::duration<double> left =
                       e.at ? *e.at - std::chrono::steady_clock::now() : std::chrono::duration<double>::max();
                   fmt::print("limit {} {} {:.0f}\n", e.request, e.ordinal ? std::to_string(*e.ordinal) : "all",
                              left.count());
                 },
             },
             event);
  std::fflush(stdout);
}

void wait_for(const Provider& provider) {
  std::vector<::pollfd> watched = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0}};
  for (const int fd : provider.fds()) watched.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  int timeout_ms = -1;
  if (const auto next = provider.next_look()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*next - std::chrono::steady_clock::now());
    timeout_ms = static_cast<int>(std::max<std::int64_t>(0, left.count()));
  }
  ::poll(watched.data(), watched.size(), timeout_ms);
}

// Returns false at the end of standard input.
bool read_lines(Provider& provider, const AgentStart& start, std::string& received) {
  ::pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (::poll(&input, 1, 0) <= 0) return true;
  std::array<char, 4096> buffer{};
  const ::ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (count <= 0) return false;
  received.append(buffer.data(), static_cast<std::size_t>(count));
  for (std::size_t end = received.find('\n'); end != received.npos; end = received.find('\n')) {
    obey(provider, start, received.substr(0, end));
    received.erase(0, end + 1);
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const AgentStart start{.command = {argv + 3, argv + argc},
                         .variables = {{"CADRE_SECRET", "not in a command line"}},
                         .directory = std::filesystem::current_path()};
  std::unique_ptr<Provider> provider;
  try {
    if (std::string_view(argv[1]) == "steps") {
      provider = std::make_unique<SlurmSteps>(own_variables());
    } else if (std::string_view(argv[1]) == "ray") {
      provider = std::make_unique<RayActors>(own_variables());
    } else {
      provider = std::make_unique<SlurmJobs>(argv[2], own_variables());
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  std::string received;
  while (read_lines(*provider, start, received)) {
    for (const ProviderEvent& event : provider->take_events()) print(event);
    wait_for(*provider);
  }
}
