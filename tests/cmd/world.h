#pragma once

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/posix_host.h"
#include "cmd/commands.h"
#include "tests/catch.h"
#include "tests/cmd/fake_environments.h"
#include "tests/fakes/handler_http_client.h"

namespace fuse::cmd {

// A folder that goes with its test.
class TestFolder {
 public:
  TestFolder() : path_(fs::temp_directory_path() / ("fuse-test-" + random_hex(6))) {
    fs::create_directories(path_);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }
  void write(const fs::path& name, const std::string& text) const {
    fs::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
  }

 private:
  fs::path path_;
};

struct FakeTerminal final : Terminal {
  bool in = false;
  bool out = false;
  bool err = false;
  WindowSize window{.rows = 24, .cols = 80};
  int input = -1;
  std::atomic<int> raw_modes{0};  // a test may wait for it in another thread
  int raw_now = 0;

  struct Raw final : RawMode {
    explicit Raw(int& now) : now_(now) { ++now_; }
    Raw(const Raw&) = delete;
    Raw& operator=(const Raw&) = delete;
    ~Raw() override { --now_; }
    int& now_;
  };

  [[nodiscard]] bool in_is_terminal() const override { return in; }
  [[nodiscard]] bool out_is_terminal() const override { return out; }
  [[nodiscard]] bool err_is_terminal() const override { return err; }
  [[nodiscard]] WindowSize size() const override { return window; }
  [[nodiscard]] int input_fd() const override { return input; }
  Result<std::unique_ptr<RawMode>> raw_mode() override {
    ++raw_modes;
    return std::unique_ptr<RawMode>(std::make_unique<Raw>(raw_now));
  }
};

// Signals that a test sends, from any thread.  As with the real watch, its end
// waits for a handler that is at work.
class FakeSignals {
 public:
  void raise(int number) {
    const std::scoped_lock lock(mutex_);
    if (std::ranges::find(numbers_, number) != numbers_.end()) handler_(number);
  }
  std::unique_ptr<SignalWatch> watch(const std::vector<int>& numbers, SignalHandler handler) {
    const std::scoped_lock lock(mutex_);
    numbers_ = numbers;
    handler_ = std::move(handler);
    return std::make_unique<Watch>(*this);
  }

 private:
  struct Watch final : SignalWatch {
    explicit Watch(FakeSignals& source) : signals(source) {}
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;
    ~Watch() override {
      const std::scoped_lock lock(signals.mutex_);
      signals.numbers_.clear();
    }
    FakeSignals& signals;
  };

  std::mutex mutex_{};
  std::vector<int> numbers_{};
  SignalHandler handler_{};
};

// Everything that a command sees, under a test's control.
struct World {
  TestFolder folder{};
  std::istringstream in{};
  std::ostringstream out{};
  std::ostringstream err{};
  PosixHost host{};
  Host* machine = nullptr;  // another than `host`
  WriteWithin write_within = write_apart;
  SystemClock clock{};
  FakeTerminal terminal{};
  FakeEnvironments environments{};
  std::map<std::string, std::string> variables{{"TERM", "xterm"}};
  std::optional<Error> connect_error{};
  // What an orchestrator elsewhere answers.
  HttpHandler elsewhere = [](const HttpRequest& /*request*/) { return text_response(404, ""); };
  FakeSignals signals{};

  // Runs the command line and returns its exit code.
  int fuse(const std::vector<std::string>& arguments) {
    Context context{.in = in,
                    .out = out,
                    .err = err,
                    .host = machine == nullptr ? host : *machine,
                    .clock = clock,
                    .terminal = terminal};
    context.variables = [this](const std::string& name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
    context.connect = [this](Context&) -> Result<std::unique_ptr<EnvironmentApi>> {
      if (connect_error) return *connect_error;
      return std::unique_ptr<EnvironmentApi>(std::make_unique<Borrowed>(environments));
    };
    context.dial = [this](Context&) -> Result<std::unique_ptr<HttpClient>> {
      if (connect_error) return *connect_error;
      return make_handler_client(elsewhere);
    };
    context.watch_signals = [this](const std::vector<int>& numbers, SignalHandler handler) {
      return signals.watch(numbers, std::move(handler));
    };
    context.write_within = write_within;
    context.directory = folder.path();
    return run(arguments, context);
  }

 private:
  // The test's environments, as something that a command owns.
  struct Borrowed final : EnvironmentApi {
    explicit Borrowed(EnvironmentApi& lender) : api(lender) {}
    Result<Environment> create(const CreateEnvironmentRequest& request,
                               const CreateOptions& options) override {
      return api.create(request, options);
    }
    Result<EnvironmentPage> list(const EnvironmentFilter& filter) override {
      return api.list(filter);
    }
    Result<Environment> get(const std::string& id, bool include_ended) override {
      return api.get(id, include_ended);
    }
    Result<void> destroy(const std::string& id) override { return api.destroy(id); }
    Result<ExecResult> exec(const std::string& id, const ExecRequest& request) override {
      return api.exec(id, request);
    }
    Result<std::unique_ptr<AttachSession>> attach(const std::string& id,
                                                  const AttachRequest& request) override {
      return api.attach(id, request);
    }
    Result<void> stop_job(const std::string& id) override { return api.stop_job(id); }
    Result<Environment> drain(const std::string& id) override { return api.drain(id); }
    Result<void> rotate_token(const std::string& id) override { return api.rotate_token(id); }
    Result<void> events(const std::string& id, const EventQuery& query, const EventSink& sink,
                        std::stop_token stop) override {
      return api.events(id, query, sink, std::move(stop));
    }
    Result<LogRange> logs(const std::string& id, const LogQuery& query, const ByteSink& sink,
                          std::stop_token stop) override {
      return api.logs(id, query, sink, std::move(stop));
    }
    EnvironmentApi& api;
  };
};

}  // namespace fuse::cmd
