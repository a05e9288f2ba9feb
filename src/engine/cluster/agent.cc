#include "engine/cluster/agent.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <random>
#include <set>
#include <span>
#include <utility>
#include <variant>

#include "base/checksum.h"
#include "base/file.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/network.h"
#include "cadre/error.h"
#include "cadre/stored.h"
#include "cadre/version.h"
#include "channel/link.h"
#include "channel/tls.h"
#include "engine/cluster/agent_files.h"
#include "engine/cluster/agent_storage.h"
#include "engine/cluster/dialler.h"
#include "engine/cluster/handshake.h"
#include "engine/cluster/messages.h"
#include "engine/cluster/ordinal.h"

namespace cadre::engine::cluster {
namespace {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;
using namespace std::chrono_literals;

// A controller that does not answer for so long may give the node up ten seconds later (ClusterEngine): by then no
// worker runs here any more.
constexpr auto kFencedAfter = 20s;
constexpr auto kSilence = channel::Link::longest_silence;
// The controller has ended when nobody listens at its port for so long.
constexpr auto kRefusedFor = 2s;
constexpr auto kDialFor = 3s;
constexpr auto kGreetFor = 5s;
constexpr auto kWelcomeFor = 20s;  // over standard streams, where what starts the agent may be slower
constexpr auto kDialPause = 100ms;
constexpr auto kLastWait = 10s;  // for workers, at the end

volatile sig_atomic_t is_told_to_go = 0;
local::LocalEngine* signalled_engine = nullptr;

// The engine's own signal handler would end workers; an agent's node goes, and its workers may end in order.
void drain_at_sigterm(local::LocalEngine& engine) {
  signalled_engine = &engine;
  struct sigaction action{};
  action.sa_handler = [](int) {
    is_told_to_go = 1;
    signalled_engine->wake();
  };
  ::sigaction(SIGTERM, &action, nullptr);
}

std::uint64_t new_session() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

// A network file system may answer late: nothing else is done meanwhile, as with the files of a worker that starts.
Saw look_at(const std::string& file) {
  Saw saw{.file = file};
  try {
    const auto opened = base::ReadableFile::open(file, base::ReadableFile::Links::refuse);
    std::array<std::byte, max_seen_bytes> content;
    const std::size_t count = opened ? opened->read(0, content) : 0;
    saw.checksum = base::checksum_of({reinterpret_cast<const char*>(content.data()), count});
    if (!opened) saw.fault = "No such file or directory";
  } catch (const StorageError& error) {
    saw.fault = error.what();
  }
  return saw;
}

class Agent {
 public:
  Agent(const AgentSettings& settings, StandardStreams streams, local::LocalEngine& engine,
        std::vector<std::string> gpu_names)
      : settings_(settings), engine_(engine), gpu_names_(std::move(gpu_names)) {
    engine_.watch(poller_.descriptor(), [this] {
      while (poller_.wait(0ns)) {
      }
    });
    engine_.pass_messages_on([this](WorkerId worker, std::span<const std::byte> body) {
      if (is_fenced_) return;
      send(Told{worker, body});
      engine_.expect_soon();
    });
    files_.emplace(AgentFiles::Send{.piece =
                                        [this](const Piece& piece) {
                                          encode_to_controller(piece, bytes_);
                                          send_encoded();
                                        },
                                    .printed = [this](const Printed& printed) { send(printed); }});
    make_link();
    cut_since_ = gone_since_ = Clock::now();
    if (settings_.over_stdio) {
      greet_over(std::move(streams));
    } else {
      dialler_.emplace(poller_, to_addresses(settings.addresses));
      tls_ = channel::tls().client(settings.certificate);
    }
  }

  // Returns the exit code of the process.
  int run() {
    while (!exit_code_) {
      const TimePoint before = Clock::now();
      for (const Event& event : engine_.wait(time_to_wait(before))) forward(event);
      const TimePoint now = Clock::now();
      if (std::exchange(is_told_to_go, 0) != 0) drain();
      while (has_room_for_files() && files_->send_more()) {
      }
      if (has_room_for_files()) files_->look(now);
      if (storage_) {
        for (const AgentStorage::Done& done : storage_->take_done())
          std::visit([this](const auto& what) { send(what); }, done);
      }
      link_->flush(now);
      if (settings_.over_stdio) {
        if (!link_->is_connected()) await_welcome(now);
      } else if (link_->is_connected()) {
        cut_since_ = gone_since_ = now;
        refused_since_.reset();
      } else {
        // The controller may have heard nothing for as long before the connection ended.
        if (const auto& broken = link_->broken()) cut_since_ = std::min(cut_since_, broken->at - kSilence);
        reconnect(now);
      }
    }
    link_->flush(Clock::now());
    end_workers();
    return *exit_code_;
  }

 private:
  // A connection before the session: both ends greet.
  struct Greeting {
    std::unique_ptr<channel::Stream> stream;
    channel::Bytes out = {};
    channel::Bytes in = {};
    TimePoint until = {};
  };

  void make_link() {
    const auto carry_out_message = [this](channel::LaneMessage&& message) {
      std::visit([this](const auto& call) { carry_out(call); }, decode_to_agent(message.content));
    };
    const channel::Link::Times times{.silence = settings_.over_stdio ? agent_silence : kSilence};
    link_ = std::make_unique<channel::Link>(poller_, session_, carry_out_message, times);
  }

  void drain() {
    if (!link_->is_connected() && workers_.empty()) return leave(0, "it was sent SIGTERM while it had no controller");
    is_draining_ = true;
    send(Draining{.reason = "the agent was sent SIGTERM"});
  }

  // Ends the workers of a session whose controller has given it up, or has ended. Another session begins when they are
  // gone.
  void begin_anew() {
    if (std::exchange(is_fenced_, true)) return;
    if (!workers_.empty())
      std::fprintf(stderr, "cadre: this agent is cut off from its controller and ends %zu workers\n", workers_.size());
    for (const WorkerId worker : workers_) engine_.kill(worker);
    storage_.reset();
    if (greeting_) drop_greeting("its session has ended meanwhile", Clock::now());
  }

  std::optional<std::chrono::nanoseconds> time_to_wait(TimePoint now) const {
    std::optional<TimePoint> next = link_->next_flush();
    const auto consider = [&](TimePoint time) { next = std::min(next.value_or(time), time); };
    if (!link_->is_connected()) {
      if (!is_fenced_) consider(std::max(next_dial_, now));  // else the workers' ends come first
      if (greeting_) next = greeting_->until;
      if (const auto deadline = dialler_ ? dialler_->deadline() : std::nullopt) next = *deadline;
      if (!workers_.empty() && settings_.ends_by_itself)
        consider(std::max(cut_since_ + kFencedAfter, now + kDialPause));
    }
    if (const auto look = files_->next_look(); look && has_room_for_files()) consider(*look);
    if (!next) return std::nullopt;
    return std::max<std::chrono::nanoseconds>(*next - now, 0ns);
  }

  // ---- The connection

  void reconnect(TimePoint now) {
    const bool refused = refused_since_ && now - *refused_since_ >= kRefusedFor;
    const bool is_cut_off = settings_.ends_by_itself && now - cut_since_ >= kFencedAfter;
    if (!workers_.empty() && (is_cut_off || refused)) begin_anew();
    if (is_fenced_ && workers_.empty()) {
      if (is_draining_) return leave(0, "it was sent SIGTERM, and its controller has ended");
      is_fenced_ = false;
      session_ = new_session();
      files_->begin_anew();
      has_been_connected_ = false;
      next_dial_ = now;
      make_link();
    }
    const double gone_s = std::chrono::duration<double>(now - gone_since_).count();
    const double most_s = std::chrono::duration<double>(refused ? Clock::duration(kRefusedFor) : kFencedAfter).count();
    const bool may_be_silent = !settings_.ends_by_itself && has_ever_been_connected_ && !refused;
    if (workers_.empty() && gone_s >= std::max(settings_.stays_s, most_s) && !may_be_silent)
      return leave(1, fmt::format("its controller cannot be reached: {}", last_failure_));
    if (greeting_ && now >= greeting_->until) drop_greeting("it does not greet", now);
    if (const auto failure = dialler_->take_failure(now)) {
      if (!failure->all_refused) refused_since_.reset();
      if (failure->all_refused && !refused_since_) refused_since_ = now;
      last_failure_ = failure->reason;
      next_dial_ = now + kDialPause;
    }
    if (is_fenced_ || greeting_ || dialler_->is_dialling() || now < next_dial_) return;
    next_dial_ = now + kDialPause;
    // A session whose workers are being ended must not be connected again: the controller would wait for their ends.
    dialler_->dial(now + kDialFor, [this](base::FileDescriptor socket) {
      if (!is_fenced_) greet(tls_->open(std::move(socket)));
    });
  }

  // In standard input and output there is one connection, and with it ends the agent.
  void greet_over(StandardStreams streams) {
    const auto* const mark = reinterpret_cast<const std::byte*>(session_mark.data());
    greet(std::make_unique<channel::PairStream>(std::move(streams.input), std::move(streams.output)),
          channel::Bytes(mark, mark + session_mark.size()), kWelcomeFor);
  }

  void await_welcome(TimePoint now) {
    if (greeting_ && now < greeting_->until) return;
    if (greeting_) drop_greeting("it does not greet", now);
    if (const auto& broken = link_->broken()) last_failure_ = broken->reason;
    is_fenced_ = true;
    if (!exit_code_)
      leave(1, fmt::format("the connection to its controller, its standard input and output, has ended: {}",
                           last_failure_));
  }

  void greet(std::unique_ptr<channel::Stream> stream, channel::Bytes mark = {}, Clock::duration most = kGreetFor) {
    greeting_.emplace(Greeting{.stream = std::move(stream), .out = std::move(mark), .until = Clock::now() + most});
    append(greeting_->out,
           Hello{.build = build_id(),
                 .version = version(),
                 .token = settings_.token,
                 .request = settings_.request,
                 .ordinal = settings_.ordinal,
                 .session = session_,
                 .continues = has_been_connected_,
                 .host = base::host_name(),
                 .addresses = settings_.over_stdio ? base::outside_addresses() : std::vector<std::string>(),
                 .pid = ::getpid(),
                 .resources = engine_.resources(),
                 .gpu_names = gpu_names_,
                 .own_directory = files_->directory().string()});
    poller_.watch(greeting_->stream->descriptor(), [this] { go_on_greeting(); });
    go_on_greeting();
  }

  void go_on_greeting() {
    Greeting& greeting = *greeting_;
    std::string failure;
    try {
      write_greeting(greeting);
      read_greeting(greeting);
      write_greeting(greeting);  // reading may have ended the encryption's own handshake
      poller_.watch_writing(greeting.stream->descriptor(), greeting.stream->waits_to_write());
    } catch (const channel::StreamEnded& end) {
      failure = end.what();  // a controller that refuses closes the connection behind its answer
    }
    try {
      if (const auto welcome = take_welcome(greeting.in)) return be_welcome(*welcome);
    } catch (const channel::ProtocolError& error) {
      failure = error.what();
    }
    if (!failure.empty()) drop_greeting(failure, Clock::now());
  }

  static void write_greeting(Greeting& greeting) {
    while (!greeting.out.empty()) {
      const std::size_t count = greeting.stream->write(greeting.out);
      if (count == 0) return;
      greeting.out.erase(greeting.out.begin(), greeting.out.begin() + static_cast<std::ptrdiff_t>(count));
    }
  }

  static void read_greeting(Greeting& greeting) {
    std::array<std::byte, 4096> space;
    while (const std::size_t count = greeting.stream->read(space))
      greeting.in.insert(greeting.in.end(), space.begin(), space.begin() + static_cast<std::ptrdiff_t>(count));
  }

  void be_welcome(const Welcome& welcome) {
    Greeting greeting = std::move(*greeting_);
    greeting_.reset();
    poller_.unwatch(greeting.stream->descriptor());
    if (!welcome.refusal.empty()) return leave(1, "its controller refuses it: " + welcome.refusal);
    if (welcome.is_over) return begin_anew();
    has_been_connected_ = has_ever_been_connected_ = true;
    link_->connect(std::move(greeting.stream), greeting.in, Clock::now());
  }

  void drop_greeting(const std::string& reason, TimePoint now) {
    last_failure_ = reason;
    poller_.unwatch(greeting_->stream->descriptor());
    greeting_.reset();
    next_dial_ = now + kDialPause;
  }

  // ---- Messages

  template <class Message>
  void send(const Message& message) {
    encode(message, bytes_);
    send_encoded();
  }
  void send_encoded() {
    link_->send(channel::Lane::reports, bytes_);
    if (bytes_.size() > channel::max_idle_bytes) channel::Bytes().swap(bytes_);
  }
  // Reports do not wait long behind files.
  bool has_room_for_files() const { return link_->is_connected() && link_->kept_bytes() < most_waiting_bytes; }

  void forward(const Event& event) {
    const auto* const exited = std::get_if<Exited>(&event);
    if (exited == nullptr) return;
    // Without its fork server a node has no workers any more: it is lost with this agent.
    if (exited->exit.kind == Exit::Kind::lost) return leave(1, exited->exit.detail);
    if (workers_.erase(exited->worker) == 0 || is_fenced_) return;
    files_->end(exited->worker);
    send(*exited);
  }

  void carry_out(const Start& start) {
    if (const std::string fault = files_->begin(start.worker, start.spec); !fault.empty())
      return send(Exited{start.worker, {Exit::Kind::not_started, 0, fault}});
    std::error_code none;
    if (!std::filesystem::is_directory(start.spec.directory, none))
      return send(Exited{start.worker,
                         {Exit::Kind::not_started, 0,
                          fmt::format("node {} does not see {}: the experiment's directory must lie on a file system "
                                      "that all nodes share",
                                      base::host_name(), start.spec.directory.string())}});
    workers_.insert(start.worker);
    engine_.start(start.worker, start.spec);
  }
  void carry_out(const Tell& tell) { engine_.send_frame(tell.worker, tell.frame); }
  void carry_out(const Kill& kill) { engine_.kill(kill.worker); }
  void carry_out(const Leave&) {
    send(Left{});
    leave(0, "");
  }
  void carry_out(const Look& look) { send(look_at(look.file)); }
  void carry_out(const Piece& piece) { files_->take(piece); }
  void carry_out(const Fetch& fetch) { files_->fetch(fetch); }
  void carry_out(const Move& move) { files_->move(move); }
  void carry_out(const Drop& drop) { files_->drop(drop); }
  void carry_out(const UseStorage& use) {
    if (files_->directory().empty())
      return send(TriedStorage{.uri = use.uri, .fault = "the node has no directory for files"});
    storage_.emplace(use, files_->directory(), [this] { engine_.wake(); });
  }
  void carry_out(const StoreFiles& store) {
    if (!storage_) return send(FilesStored{.place = store.place, .fault = "the node was told of no storage"});
    storage_->store(store);
  }
  void carry_out(const LoadFiles& load) {
    if (!storage_) return send(FilesLoaded{.place = load.place, .fault = "the node was told of no storage"});
    storage_->load(load);
  }
  void carry_out(const Stay& stay) { settings_.stays_s = stay.seconds; }

  void leave(int code, const std::string& reason) {
    if (!reason.empty()) std::fprintf(stderr, "cadre: this agent ends: %s\n", reason.c_str());
    exit_code_ = code;
    engine_.wake();
  }

  void end_workers() {
    for (const WorkerId worker : workers_) engine_.kill(worker);
    for (const TimePoint until = Clock::now() + kLastWait; !workers_.empty() && Clock::now() < until;) {
      for (const Event& event : engine_.wait(until - Clock::now())) {
        if (const auto* exited = std::get_if<Exited>(&event)) workers_.erase(exited->worker);
      }
    }
  }

  AgentSettings settings_;
  local::LocalEngine& engine_;
  std::vector<std::string> gpu_names_;
  channel::Poller poller_;
  std::optional<Dialler> dialler_ = {};  // not over_stdio
  std::unique_ptr<channel::TlsEndpoint> tls_ = {};
  std::uint64_t session_ = new_session();
  bool has_been_connected_ = false;  // in this session
  bool has_ever_been_connected_ = false;
  std::unique_ptr<channel::Link> link_ = {};
  std::optional<AgentFiles> files_ = {};
  std::optional<AgentStorage> storage_ = {};  // where the run is published, if the controller has said so
  std::optional<Greeting> greeting_ = {};
  std::set<WorkerId> workers_ = {};  // that have not ended
  bool is_fenced_ = false;           // true: they end, and nobody is told
  bool is_draining_ = false;         // true: the controller of this session was told, and has asked for another node
  TimePoint gone_since_ = {};        // when the last connection was there
  TimePoint cut_since_ = {};         // when the controller may have heard of this agent last
  std::optional<TimePoint> refused_since_ = {};
  TimePoint next_dial_ = {};
  std::string last_failure_ = "nothing was tried yet";
  std::optional<int> exit_code_ = {};
  channel::Bytes bytes_ = {};
};

}  // namespace

std::optional<AgentSettings> take_agent_settings() {
  const char* const text = std::getenv(agent_variable);
  if (text == nullptr) return std::nullopt;
  AgentSettings settings = to_agent_settings(text);
  ::unsetenv(agent_variable);
  settings.ordinal = agent_ordinal().value_or(0);
  ::unsetenv(kOrdinalVariable);
  settings.cpus = agent_cpus();
  ::unsetenv(kCpusVariable);
  return settings;
}

AgentSettings to_agent_settings(const std::string& text) {
  AgentSettings settings;
  try {
    from_stored(settings, Stored(base::parse_json(text, agent_variable)));
  } catch (const StorageError& error) {
    throw InvalidArgument(error.what());
  }
  return settings;
}

void run_agent(const AgentSettings& settings, StandardStreams streams, local::LocalEngine& engine,
               std::vector<std::string> gpu_names) {
  if (settings.ends_by_itself) drain_at_sigterm(engine);
  ::signal(SIGPIPE, SIG_IGN);  // nobody reads what it prints once the process that started it is gone
  int code = 1;
  try {
    code = Agent(settings, std::move(streams), engine, std::move(gpu_names)).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cadre: this agent ends: %s\n", error.what());
  }
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace cadre::engine::cluster
