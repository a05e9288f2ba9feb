#include "engine/cluster/downloads.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include "cadre/error.h"
#include "storage/remote_directory.h"
#include "storage/storage.h"

namespace cadre::engine::cluster {
namespace {

constexpr auto kPatienceToDownload = std::chrono::seconds(30);

Downloads::Done download(const std::filesystem::path& directory, const std::string& place) {
  Downloads::Done done{.place = place};
  try {
    storage::fetch(directory / place, kPatienceToDownload);
  } catch (const storage::StorageFault& fault) {
    done.fault = fault.what();
    done.may_pass = fault.kind() != storage::StorageFault::Kind::lasting;
  } catch (const OutOfSpace& error) {
    done.fault = error.what();
    done.may_pass = true;
  } catch (const std::exception& error) {
    done.fault = error.what();
  }
  return done;
}

}  // namespace

void Downloads::begin(const std::string& place) {
  if (running_.contains(place) || std::ranges::find(waiting_, place) != waiting_.end()) return;
  waiting_.push_back(place);
  start_next();
}

void Downloads::start_next() {
  while (!waiting_.empty() && running_.size() < at_a_time) {
    const std::string place = std::move(waiting_.front());
    waiting_.pop_front();
    const auto run = [this, place] {
      Done done = download(directory_, place);
      wake_();
      return done;
    };
    try {
      running_.emplace(place, std::async(std::launch::async, run));
    } catch (const std::system_error& error) {
      refused_.push_back({place, fmt::format("no thread can be started: {}", error.what()), /*may_pass=*/true});
      wake_();
    }
  }
}

std::vector<Downloads::Done> Downloads::take_done() {
  std::vector<Done> done = std::exchange(refused_, {});
  for (auto one = running_.begin(); one != running_.end();) {
    if (one->second.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      ++one;
    } else {
      done.push_back(one->second.get());
      one = running_.erase(one);
    }
  }
  start_next();
  return done;
}

}  // namespace cadre::engine::cluster
