#include "guest/agent.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <utility>

#include "base/posix_host.h"
#include "base/text.h"
#include "base/version.h"
#include "guest/channel/messages.h"
#include "guest/children.h"
#include "guest/event_loop.h"
#include "guest/health_check.h"
#include "guest/job.h"
#include "guest/job_log.h"
#include "guest/process_stream.h"
#include "guest/server_link.h"
#include "guest/services.h"
#include "guest/upload.h"

namespace fuse {

namespace {

constexpr std::chrono::seconds most_clock_error(1);
// How long the end of a job may hold up a shutdown.
constexpr std::chrono::seconds shutdown_limit(15);
// For the answer to leave the port before the power goes.
constexpr std::chrono::milliseconds answer_time(100);

std::string boot_id() {
  const auto text = PosixHost().read_file("/proc/sys/kernel/random/boot_id");
  return text ? std::string(trim(*text)) : "";
}

std::chrono::milliseconds uptime() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

std::string hostname() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "";
}

Result<void> set_clock(WallTime now) {
  const auto error = now - SystemClock().wall();
  if (std::chrono::abs(error) <= most_clock_error) return {};
  const auto since = now.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const timespec time{.tv_sec = seconds.count(), .tv_nsec = (since - seconds).count()};
  if (::clock_settime(CLOCK_REALTIME, &time) < 0) return errno_error("set the clock", errno);
  return {};
}

class Agent {
 public:
  Agent(const AgentOptions& options, EventLoop& loop, Children& children, Port& port)
      : options_(options),
        loop_(loop),
        children_(children),
        port_(port),
        boot_id_(boot_id()),
        job_(loop, children,
             {.root = options.root.empty() ? fs::path("/") : options.root,
              .state = at("/var/lib/fuse/job"),
              .run = at("/run/fuse/job"),
              .cgroup = options.cgroup,
              .most_log_bytes = options.most_log_bytes},
             boot_id_),
        services_(loop, children, options.root, at("/fuse")),
        health_(loop, children, at("/fuse")),
        link_(
            loop, [this] { return hello(); },
            [this](Operation operation, ServerStream& stream) {
              return begin(std::move(operation), stream);
            },
            [this] { port_.flush(); }) {}
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  ~Agent() = default;

  Result<void> run() {
    job_.load();
    health_.resume();
    if (auto served = port_.serve(link_); !served) return served;
    options_.on_ready();
    return loop_.run();
  }

 private:
  using Handler = std::unique_ptr<StreamHandler>;

  // A shutdown that was asked for; it goes on when its stream is gone.
  class Farewell final : public StreamHandler {
   public:
    Farewell(Agent& agent, ServerStream& stream) : agent_(agent), stream_(stream) {}
    Farewell(const Farewell&) = delete;
    Farewell& operator=(const Farewell&) = delete;
    ~Farewell() override {
      if (agent_.farewell_ == this) agent_.farewell_ = nullptr;
    }
    void on_data(std::uint8_t /*pipe*/, std::string_view bytes, bool /*end*/) override {
      stream_.grant(bytes.size());
    }
    void on_credit() override {}
    void say() { stream_.close("{}"); }

   private:
    Agent& agent_;
    ServerStream& stream_;
  };

  // Somebody who waits for the services, and goes when they are up.
  class Beginning final : public StreamHandler {
   public:
    Beginning(Agent& agent, ServerStream& stream) : agent_(agent), stream_(stream) {
      listener_ = agent_.services_.begin([this](const Result<void>& up) {
        listener_ = 0;
        (void)answer(stream_, up ? agent_.health_.begin() : up);
      });
    }
    Beginning(const Beginning&) = delete;
    Beginning& operator=(const Beginning&) = delete;
    ~Beginning() override {
      if (listener_ != 0) agent_.services_.forget(listener_);
    }
    void on_data(std::uint8_t /*pipe*/, std::string_view bytes, bool /*end*/) override {
      stream_.grant(bytes.size());
    }
    void on_credit() override {}

   private:
    Agent& agent_;
    ServerStream& stream_;
    int listener_ = 0;
  };

  [[nodiscard]] fs::path at(const fs::path& path) const {
    return options_.root.empty() ? path : options_.root / path.relative_path();
  }

  std::string hello() const {
    return hello_text({.protocol = guest_protocol,
                       .version = std::string(version()),
                       .build = build_id(),
                       .boot_id = boot_id_,
                       .hostname = hostname(),
                       .uptime = uptime(),
                       .job = job_.status()});
  }

  Handler begin(Operation operation, ServerStream& stream) {
    return std::visit([&](auto& known) { return start(std::move(known), stream); }, operation);
  }

  Handler start(const ExecOperation& exec, ServerStream& stream) {
    return start_process(loop_, children_, stream, plan_exec(exec, options_.root));
  }
  Handler start(const AttachOperation& attach, ServerStream& stream) {
    return start_process(loop_, children_, stream, plan_attach(attach, options_.root));
  }
  Handler start(const UploadOperation& upload, ServerStream& stream) {
    return start_upload(stream, upload, options_.root);
  }
  Handler start(const BeginOperation& /*begin*/, ServerStream& stream) {
    return std::make_unique<Beginning>(*this, stream);
  }
  Handler start(JobStartOperation job, ServerStream& stream) {
    return answer(stream, job_.start(job.key, std::move(job.spec)));
  }
  Handler start(const JobStatusOperation& /*status*/, ServerStream& stream) {
    const auto status = job_.status();
    if (status) {
      stream.close(guest_job_text(*status));
    } else {
      stream.fail({ErrorCode::not_found, "this guest has had no job"});
    }
    return nullptr;
  }
  Handler start(const JobLogOperation& log, ServerStream& stream) {
    return start_job_log(job_, stream, log.query);
  }
  Handler start(const JobStopOperation& stop, ServerStream& stream) {
    return answer(stream, job_.stop(std::chrono::seconds(stop.grace_seconds)));
  }
  Handler start(const ClockOperation& clock, ServerStream& stream) {
    return answer(stream, options_.owns_machine ? set_clock(clock.now) : Result<void>());
  }
  Handler start(const ShutdownOperation& /*shutdown*/, ServerStream& stream) {
    auto farewell = std::make_unique<Farewell>(*this, stream);
    farewell_ = farewell.get();
    job_.kill();
    shutdown_limit_ = loop_.after(shutdown_limit, [this] { say_farewell(); });
    (void)job_.listen([this] { say_farewell_if_over(); });
    // Its handler is not in place before this returns.
    loop_.post([this] { say_farewell_if_over(); });
    return farewell;
  }

  static Handler answer(ServerStream& stream, const Result<void>& outcome) {
    if (outcome) {
      stream.close("{}");
    } else {
      stream.fail(outcome.error());
    }
    return nullptr;
  }

  void say_farewell_if_over() {
    if (job_.has_ended()) say_farewell();
  }

  void say_farewell() {
    shutdown_limit_.reset();
    if (farewell_ != nullptr) farewell_->say();
    port_.flush();
    stop_timer_ = loop_.after(answer_time, [this] { loop_.stop(); });
  }

  const AgentOptions& options_;
  EventLoop& loop_;
  Children& children_;
  Port& port_;
  std::string boot_id_;
  Job job_;
  Services services_;
  HealthCheck health_;
  Farewell* farewell_ = nullptr;
  EventLoop::Registration shutdown_limit_{};
  EventLoop::Registration stop_timer_{};
  // After what its handlers use: they are dropped first.
  ServerLink link_;
};

// So that a job with many files, or one that eats all memory, does not take the
// agent with it.
void prepare_process(const AgentOptions& options) {
  ::umask(022);
  if (!options.owns_machine) return;
  // The stock orchestrator drains a guest by asking a server of this name to end; ours
  // begins nothing by itself, so it has nothing to end.
  (void)::prctl(PR_SET_NAME, "fused");
  ::signal(SIGTERM, SIG_IGN);
  constexpr rlim_t soft_files = 65536;
  constexpr rlim_t hard_files = 524288;
  const rlimit files{.rlim_cur = soft_files, .rlim_max = hard_files};
  (void)::setrlimit(RLIMIT_NOFILE, &files);
  (void)PosixHost().write_file("/proc/self/oom_score_adj", "-1000");
}

Result<void> serve(const AgentOptions& options) {
  auto loop = EventLoop::create();
  if (!loop) return loop.error();
  auto children = Children::create(**loop);
  if (!children) return children.error();
  auto port = Port::open(**loop, options.port, options.patience);
  if (!port) return port.error();
  Agent agent(options, **loop, **children, **port);
  return agent.run();
}

}  // namespace

int run_guest_agent(const AgentOptions& options) {
  prepare_process(options);
  if (auto served = serve(options); !served) {
    std::fprintf(stderr, "fuse agent: %s\n", served.error().message.c_str());
    return 1;
  }
  if (options.owns_machine) {
    ::sync();
    ::reboot(RB_POWER_OFF);
  }
  return 0;
}

}  // namespace fuse
