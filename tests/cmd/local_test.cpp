#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>

#include "base/fd.h"
#include "base/text.h"
#include "base/version.h"
#include "cmd/local_client.h"
#include "cmd/local_state.h"
#include "tests/cmd/world.h"

namespace fuse::cmd {

namespace {

// A state folder, whose background process ends with the test.
struct LocalWorld {
  TestFolder folder{};
  PosixHost host{};
  SystemClock clock{};
  LocalPaths paths{folder.path() / "state"};
  std::vector<std::string> program{FUSE_TEST_DAEMON};
  std::vector<std::string> environment{"PATH=/usr/bin:/bin"};
  std::string build{};
  std::mutex mutex{};
  std::vector<std::string> said{};

  LocalWorld() = default;
  LocalWorld(const LocalWorld&) = delete;
  LocalWorld& operator=(const LocalWorld&) = delete;
  ~LocalWorld() { (void)client().stop(); }

  LocalClient client() {
    return {{.paths = paths,
             .program = program,
             .environment = environment,
             .build_id = build,
             .patience = std::chrono::seconds(60)},
            host,
            clock,
            [this](const std::string& line) {
              const std::scoped_lock lock(mutex);
              said.push_back(line);
            }};
  }
  DaemonInfo start() {
    const auto info = client().ensure(AcceptBuild::any);
    INFO((info ? std::string() : info.error().message));
    REQUIRE(info);
    return *info;
  }
  bool runs() { return StateLock::holder(paths.lock()).has_value(); }
};

bool is_alive(std::int64_t pid) {
  const auto stat = PosixHost().read_file(cat("/proc/", pid, "/stat"));
  return stat && stat->find(") Z ") == std::string::npos;
}

mode_t mode_of(const fs::path& path) {
  return static_cast<mode_t>(fs::status(path).permissions());
}

// The bytes that hex digits stand for.
std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

// A copy of the helper that takes itself for another build; its build id.
std::string make_other_build(const std::string& build_id, const fs::path& copy) {
  std::ifstream in(FUSE_TEST_DAEMON, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  const std::string old_id = from_hex(build_id);
  std::string new_id = old_id;
  new_id[0] = static_cast<char>(new_id[0] ^ 0x5A);
  const std::size_t at = bytes.find(old_id);
  REQUIRE(at != std::string::npos);
  bytes.replace(at, new_id.size(), new_id);
  std::ofstream(copy, std::ios::binary) << bytes;
  fs::permissions(copy, fs::perms::owner_all);
  return hex_encode(new_id);
}

}  // namespace

TEST_CASE("the background process is started once, private, and says so once") {
  LocalWorld world;
  fs::create_directories(world.paths.dir);
  fs::permissions(world.paths.dir, fs::perms(0755));
  const auto before = world.client().look();
  REQUIRE(before);
  CHECK_FALSE(*before);

  const DaemonInfo info = world.start();
  const DaemonInfo again = world.start();

  CHECK(info.pid == again.pid);
  CHECK(::getsid(static_cast<pid_t>(info.pid)) == info.pid);
  CHECK(world.said == std::vector<std::string>{cat("started fuse's background process (pid ",
                                                   info.pid, "); stop it with: fuse local down")});
  CHECK(mode_of(world.paths.dir) == 0700);
  CHECK(mode_of(world.paths.socket()) == 0600);
  CHECK(mode_of(world.paths.key()) == 0600);
  CHECK(mode_of(world.paths.database()) == 0600);
  CHECK(fs::file_size(world.paths.key()) == 32);
  CHECK(StateLock::holder(world.paths.lock()) == static_cast<pid_t>(info.pid));
}

TEST_CASE("clients that come at the same time start one background process between them") {
  LocalWorld world;
  world.environment.emplace_back("FUSE_TEST_SLOW_MS=300");
  std::mutex mutex;
  std::set<std::int64_t> pids;
  {
    std::vector<std::jthread> clients;
    for (int i = 0; i < 6; ++i) {
      clients.emplace_back([&] {
        const auto info = world.client().ensure(AcceptBuild::any);
        const std::scoped_lock lock(mutex);
        pids.insert(info ? info->pid : -1);
      });
    }
  }
  CHECK(pids.size() == 1);
  CHECK(*pids.begin() > 0);
  CHECK(world.said.size() == 1);
}

TEST_CASE("a killed background process is replaced, and its socket file is no obstacle") {
  LocalWorld world;
  const DaemonInfo first = world.start();
  ::kill(static_cast<pid_t>(first.pid), SIGKILL);
  while (world.runs()) std::this_thread::yield();
  CHECK(fs::exists(world.paths.socket()));

  const DaemonInfo second = world.start();
  CHECK(second.pid != first.pid);
  CHECK(world.said.size() == 2);
}

TEST_CASE("a client that started one leaves no zombie of it when it starts the next") {
  LocalWorld world;
  LocalClient client = world.client();
  const auto first = client.ensure(AcceptBuild::any);
  REQUIRE(first);
  ::kill(static_cast<pid_t>(first->pid), SIGKILL);
  while (world.runs()) std::this_thread::yield();
  const auto second = client.ensure(AcceptBuild::any);
  REQUIRE(second);
  CHECK(second->pid != first->pid);
  CHECK_FALSE(world.host.read_file(cat("/proc/", first->pid, "/stat")));
}

TEST_CASE("a file where the socket belongs is no obstacle either, when nobody listens on it") {
  LocalWorld world;
  fs::create_directories(world.paths.dir);
  const Fd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = world.paths.socket().native();
  REQUIRE(name.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  REQUIRE(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  CHECK(world.start().pid > 0);
}

TEST_CASE("a state folder may have a long name") {
  LocalWorld world;
  world.paths.dir = world.folder.path() / std::string(120, 'd') / "state";
  CHECK(world.start().pid > 0);
}

TEST_CASE("the background process stops when it is told to, by a client or by SIGTERM") {
  LocalWorld world;
  const DaemonInfo info = world.start();
  const auto stopped = world.client().stop();
  REQUIRE(stopped);
  REQUIRE(*stopped);
  CHECK((*stopped)->pid == info.pid);
  CHECK_FALSE(world.runs());
  const auto none = world.client().stop();
  REQUIRE(none);
  CHECK_FALSE(*none);

  const DaemonInfo next = world.start();
  ::kill(static_cast<pid_t>(next.pid), SIGTERM);
  while (world.runs()) std::this_thread::yield();
  const auto log = world.host.read_file(world.paths.log());
  REQUIRE(log);
  CHECK(log->find("because=\"signal 15\"") != std::string::npos);
}

TEST_CASE("a background process of another build hands over to a new one") {
  LocalWorld world;
  const DaemonInfo first = world.start();
  const fs::path other = world.folder.path() / "other-build";
  world.build = make_other_build(first.build_id, other);
  world.program = {other.native()};

  // A stream in progress keeps what answers.
  const auto kept = world.client().ensure(AcceptBuild::any);
  REQUIRE(kept);
  CHECK(kept->pid == first.pid);

  const auto second = world.client().ensure(AcceptBuild::same);
  REQUIRE(second);
  CHECK(second->pid != first.pid);
  CHECK(second->build_id == world.build);
  CHECK_FALSE(is_alive(first.pid));
  REQUIRE(world.said.size() == 3);
  CHECK(world.said[1].find("is of another build: it hands over to a new one; VMs go on") !=
        std::string::npos);
}

TEST_CASE("without anything alive it ends by itself") {
  LocalWorld world;
  world.environment.emplace_back("FUSE_TEST_IDLE_MS=200");
  const DaemonInfo info = world.start();
  while (is_alive(info.pid)) std::this_thread::yield();
  CHECK_FALSE(world.runs());
  const auto log = world.host.read_file(world.paths.log());
  REQUIRE(log);
  CHECK(log->find("nothing is alive") != std::string::npos);
}

TEST_CASE("one that does not start shows the end of its log") {
  LocalWorld world;
  world.environment.emplace_back("FUSE_TEST_FAIL=QEMU is not installed");
  const auto info = world.client().ensure(AcceptBuild::any);
  REQUIRE_FALSE(info);
  CHECK(info.error().code == ErrorCode::unreachable);
  CHECK(info.error().message.find("fuse's background process did not start:\n") == 0);
  CHECK(info.error().message.find("error: this machine's agent: QEMU is not installed") !=
        std::string::npos);
  CHECK(info.error().details.at("hint") == cat("all of its log: ", world.paths.log().native()));
}

TEST_CASE("a damaged key or database is named, with the way out") {
  LocalWorld world;
  (void)world.start();
  REQUIRE(world.client().stop());
  std::ofstream(world.paths.key(), std::ios::binary) << "short";
  const auto key = world.client().ensure(AcceptBuild::any);
  REQUIRE_FALSE(key);
  CHECK(key.error().message.find(cat("the key ", world.paths.key().native(),
                                     " is damaged: it has 5 bytes, not 32")) != std::string::npos);
  CHECK(key.error().message.find(cat("rm ", world.paths.key().native())) != std::string::npos);

  fs::remove(world.paths.key());
  for (const char* more : {"-wal", "-shm"}) {
    fs::remove(world.paths.database().native() + more);
  }
  std::ofstream(world.paths.database(), std::ios::binary) << std::string(8192, 'x');
  const auto database = world.client().ensure(AcceptBuild::any);
  REQUIRE_FALSE(database);
  CHECK(database.error().message.find(cat("open the database ", world.paths.database().native())) !=
        std::string::npos);
  CHECK(database.error().message.find(cat("mv ", world.paths.database().native())) !=
        std::string::npos);
}

TEST_CASE("one that is long in answering is waited for, and the user told") {
  LocalWorld world;
  world.environment.emplace_back("FUSE_TEST_SLOW_MS=400");
  LocalClient client({.paths = world.paths,
                      .program = world.program,
                      .environment = world.environment,
                      .silence = std::chrono::milliseconds(50)},
                     world.host, world.clock,
                     [&world](const std::string& line) { world.said.push_back(line); });
  REQUIRE(client.ensure(AcceptBuild::any));
  REQUIRE(world.said.size() == 2);
  CHECK(world.said[0].find("waiting for fuse's background process") == 0);

  // One that has the lock and never answers is named in the end.
  REQUIRE(client.stop());
  const auto lock = StateLock::take(world.paths.lock());
  REQUIRE(lock);
  REQUIRE(*lock);
  LocalClient impatient({.paths = world.paths,
                         .program = world.program,
                         .environment = world.environment,
                         .patience = std::chrono::milliseconds(300),
                         .silence = std::chrono::milliseconds(50)},
                        world.host, world.clock,
                        [&world](const std::string& line) { world.said.push_back(line); });
  const auto info = impatient.ensure(AcceptBuild::any);
  REQUIRE_FALSE(info);
  CHECK(info.error().code == ErrorCode::unreachable);
  CHECK(info.error().message.find(cat("(pid ", ::getpid(), ") does not answer at ",
                                      world.paths.socket().native())) != std::string::npos);
  CHECK(info.error().details.at("hint").find(cat("to end it: kill ", ::getpid())) !=
        std::string::npos);
  CHECK(world.said.back().find(cat("waiting for fuse's background process (pid ", ::getpid(),
                                   "); what it does: ")) == 0);
}

TEST_CASE("a program that cannot be started is an error of its own") {
  LocalWorld world;
  world.program = {(world.folder.path() / "nowhere").native()};
  const auto info = world.client().ensure(AcceptBuild::any);
  REQUIRE_FALSE(info);
  CHECK(info.error().message.find("fuse's background process cannot be started: ") == 0);
}

TEST_CASE("images in use are asked of the background process only when there are VMs") {
  LocalWorld world;
  const auto none = world.client().images_in_use();
  REQUIRE(none);
  CHECK(none->empty());
  CHECK_FALSE(world.runs());
  fs::create_directories(world.paths.agent_state() / "vms" / "01UID");
  const auto some = world.client().images_in_use();
  REQUIRE(some);
  CHECK(*some == std::set<fs::path>{"/images/blobs/a"});
  CHECK(world.runs());
}

TEST_CASE("a log beyond its size is moved aside") {
  TestFolder folder;
  const LocalPaths paths{folder.path()};
  folder.write("daemon.log", std::string((4U << 20U) + 1, 'x'));
  REQUIRE(open_log(paths));
  CHECK(fs::file_size(paths.old_log()) == (4U << 20U) + 1);
  CHECK(fs::file_size(paths.log()) == 0);
  folder.write("daemon.log", "one\ntwo\nthree\n");
  PosixHost host;
  CHECK(log_tail(host, paths, 0, 2) == "two\nthree");
  CHECK(log_tail(host, paths, 8, 2) == "three");
  CHECK(log_tail(host, paths, 99, 2).empty());
}

}  // namespace fuse::cmd
