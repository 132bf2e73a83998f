#include "tests/fakes/fake_host_agent.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "base/text.h"
#include "net/attach_frames.h"

namespace fuse {

namespace {

Error no_vm() {
  return {ErrorCode::not_found, "vm not found"};
}

// Echoes its input until that ends, then exits with the length of what it read.
class EchoSession final : public AttachSession {
 public:
  Result<std::optional<AttachFrame>> read() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !frames_.empty() || closed_; });
    if (frames_.empty()) return std::optional<AttachFrame>();
    AttachFrame frame = std::move(frames_.front());
    frames_.pop_front();
    return std::optional<AttachFrame>(std::move(frame));
  }
  Result<void> write(const AttachFrame& frame) override {
    const std::scoped_lock lock(mutex_);
    if (frame.type == AttachFrameType::stdin_bytes && frame.payload.empty()) {
      frames_.push_back({AttachFrameType::exit, encode_exit(length_)});
      closed_ = true;
    } else if (frame.type == AttachFrameType::stdin_bytes) {
      length_ += static_cast<int>(frame.payload.size());
      frames_.push_back({AttachFrameType::stdout_bytes, frame.payload});
    }
    changed_.notify_all();
    return {};
  }
  void close() override {
    const std::scoped_lock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<AttachFrame> frames_;
  bool closed_ = false;
  int length_ = 0;
};

std::size_t start_of_tail(const std::string& log, std::uint64_t lines) {
  std::size_t at = log.size();
  if (at > 0 && log[at - 1] == '\n') --at;
  for (; at > 0; --at) {
    if (log[at - 1] == '\n' && --lines == 0) return at;
  }
  return 0;
}

}  // namespace

FakeHostAgent::FakeHostAgent() {
  capacity_ = {.cpus = 8, .ram_mb = 16'384, .storage_gb = 100, .arch = "amd64"};
}

template <class T>
Result<T> FakeHostAgent::call(const std::string& name, const std::function<Result<T>()>& body) {
  if (before) {
    if (auto error = before(name)) return *std::move(error);
  }
  Result<T> result = [&] {
    const std::scoped_lock lock(mutex_);
    calls_.push_back(name);
    return body();
  }();
  if (after) {
    if (auto error = after(name)) return *std::move(error);
  }
  return result;
}

FakeHostAgent::Vm* FakeHostAgent::find(const std::string& vm_id) {
  const auto by_uid = vms_.find(vm_id);
  if (by_uid != vms_.end()) return &by_uid->second;
  for (auto& [uid, vm] : vms_) {
    if (vm.request.name == vm_id) return &vm;
  }
  return nullptr;
}

VmInfo FakeHostAgent::info_of(const Vm& vm) const {
  return {.vm_id = lowercase(vm.request.name),
          .uid = vm.request.uid,
          .url = "",
          .cluster = vm.request.cluster,
          .alive = vm.alive,
          .ended = vm.ended};
}

void FakeHostAgent::check_devices(const CreateVmRequest& request) {
  std::set<std::string> used;
  for (const auto& [uid, vm] : vms_) {
    used.insert(vm.request.gpu_device_uuids.begin(), vm.request.gpu_device_uuids.end());
    used.insert(vm.request.mig_instance_uuids.begin(), vm.request.mig_instance_uuids.end());
  }
  for (const auto* uuids : {&request.gpu_device_uuids, &request.mig_instance_uuids}) {
    for (const std::string& uuid : *uuids) {
      if (used.count(uuid) != 0) violations_.push_back(cat("device ", uuid, " is in two vms"));
    }
  }
}

void FakeHostAgent::set_capacity(const HostCapacity& capacity) {
  const std::scoped_lock lock(mutex_);
  capacity_ = capacity;
}

void FakeHostAgent::set_job(const std::string& uid, const JobStatus& status) {
  const std::scoped_lock lock(mutex_);
  if (Vm* const vm = find(uid)) vm->status = status;
  changed_.notify_all();
}

void FakeHostAgent::print(const std::string& uid, const std::string& text) {
  const std::scoped_lock lock(mutex_);
  if (Vm* const vm = find(uid)) vm->log += text;
  changed_.notify_all();
}

void FakeHostAgent::kill_vm(const std::string& uid, const std::string& why) {
  const std::scoped_lock lock(mutex_);
  Vm* const vm = find(uid);
  if (vm == nullptr) return;
  vm->alive = false;
  vm->ended = why;
  if (vm->job && !is_over(vm->status)) {
    vm->status.state = JobState::lost;
    vm->status.reason = "lost";
  }
  changed_.notify_all();
}

void FakeHostAgent::plant(const CreateVmRequest& request) {
  const std::scoped_lock lock(mutex_);
  vms_[request.uid] = Vm{.request = request};
}

std::map<std::string, FakeHostAgent::Vm> FakeHostAgent::vms() const {
  const std::scoped_lock lock(mutex_);
  return vms_;
}

std::vector<std::string> FakeHostAgent::violations() const {
  const std::scoped_lock lock(mutex_);
  return violations_;
}

std::vector<std::string> FakeHostAgent::calls() const {
  const std::scoped_lock lock(mutex_);
  return calls_;
}

int FakeHostAgent::made() const {
  const std::scoped_lock lock(mutex_);
  return made_;
}

Result<HostCapacity> FakeHostAgent::capacity() {
  return call<HostCapacity>("capacity", [&]() -> Result<HostCapacity> { return capacity_; });
}

Result<VmInfo> FakeHostAgent::create_vm(const CreateVmRequest& request) {
  return call<VmInfo>("create_vm", [&]() -> Result<VmInfo> {
    const auto known = keys_.find(request.idempotency_key);
    if (!request.idempotency_key.empty() && known != keys_.end()) {
      const Vm* const vm = find(known->second);
      if (vm != nullptr) return info_of(*vm);
    }
    if (find(request.uid) != nullptr || find(request.name) != nullptr) {
      return Error{ErrorCode::conflict, cat("vm ", request.name, " already exists")};
    }
    if (gone_.count(request.uid) != 0) {
      violations_.push_back(cat("vm ", request.name, " is made again after its end"));
    }
    check_devices(request);
    vms_[request.uid] = Vm{.request = request};
    keys_[request.idempotency_key] = request.uid;
    ++made_;
    return info_of(vms_[request.uid]);
  });
}

Result<VmInfo> FakeHostAgent::get_vm(const std::string& vm_id) {
  return call<VmInfo>("get_vm", [&]() -> Result<VmInfo> {
    const Vm* const vm = find(vm_id);
    return vm == nullptr ? Result<VmInfo>(no_vm()) : info_of(*vm);
  });
}

Result<std::vector<VmInfo>> FakeHostAgent::list_vms(const std::string& prefix) {
  return call<std::vector<VmInfo>>("list_vms", [&]() -> Result<std::vector<VmInfo>> {
    std::vector<VmInfo> out;
    for (const auto& [uid, vm] : vms_) {
      if (vm.request.name.rfind(prefix, 0) == 0) out.push_back(info_of(vm));
    }
    return out;
  });
}

Result<void> FakeHostAgent::destroy_vm(const std::string& vm_id) {
  return call<void>("destroy_vm", [&]() -> Result<void> {
    Vm* const vm = find(vm_id);
    if (vm == nullptr) return no_vm();
    if (vm->job && !is_over(vm->status)) {
      vm->status.state = JobState::exited;
      vm->status.reason = "stopped";
      vm->status.exit_code = 143;
      vm->status.signal = 15;
    }
    const std::string uid = vm->request.uid;
    gone_[uid] = std::move(*vm);
    vms_.erase(uid);
    changed_.notify_all();
    return {};
  });
}

Result<void> FakeHostAgent::upload(const std::string& vm_id, const UploadFile& file) {
  return call<void>("upload", [&]() -> Result<void> {
    Vm* const vm = find(vm_id);
    if (vm == nullptr) return no_vm();
    if (vm->job) violations_.push_back(cat("upload of ", file.path, " after the job began"));
    vm->files[file.path] = file;
    return {};
  });
}

Result<ExecResult> FakeHostAgent::exec(const std::string& vm_id, const ExecRequest& request) {
  return call<ExecResult>("exec", [&]() -> Result<ExecResult> {
    Vm* const vm = find(vm_id);
    if (vm == nullptr) return no_vm();
    vm->execs.push_back(request);
    if (on_exec) return on_exec(request);
    return ExecResult{.out = join(request.cmd, " ")};
  });
}

Result<std::unique_ptr<AttachSession>> FakeHostAgent::attach(const std::string& vm_id,
                                                             const AttachRequest& /*request*/) {
  using Session = std::unique_ptr<AttachSession>;
  return call<Session>("attach", [&]() -> Result<Session> {
    if (find(vm_id) == nullptr) return no_vm();
    return Session(std::make_unique<EchoSession>());
  });
}

Result<std::vector<Endpoint>> FakeHostAgent::start_agent(const std::string& vm_id,
                                                         const StartAgentRequest& request) {
  return call<std::vector<Endpoint>>("start_agent", [&]() -> Result<std::vector<Endpoint>> {
    Vm* const vm = find(vm_id);
    if (vm == nullptr) return no_vm();
    vm->started = request;
    std::vector<Endpoint> out;
    for (const ExposeSpec& expose : request.expose) {
      const std::int32_t port = 20'000 + expose.port;
      out.push_back({.as = expose.as,
                     .url = cat("127.0.0.1:", port),
                     .port = expose.port,
                     .host_port = port});
    }
    return out;
  });
}

Result<void> FakeHostAgent::start_job(const std::string& vm_id, const JobSpec& job) {
  return call<void>("start_job", [&]() -> Result<void> {
    Vm* const vm = find(vm_id);
    if (vm == nullptr) return no_vm();
    if (vm->job) return Error{ErrorCode::conflict, "the vm has had a job"};
    vm->job = job;
    vm->status = {.state = JobState::running,
                  .phase = job.steps.empty() ? JobPhase::run : JobPhase::build,
                  .step = job.steps.empty() ? 0 : 1,
                  .steps = static_cast<std::int32_t>(job.steps.size())};
    if (on_job) vm->status = on_job(job);
    changed_.notify_all();
    return {};
  });
}

Result<JobStatus> FakeHostAgent::job(const std::string& vm_id) {
  return call<JobStatus>("job", [&]() -> Result<JobStatus> {
    const Vm* vm = find(vm_id);
    if (vm == nullptr && gone_.count(vm_id) != 0) vm = &gone_[vm_id];
    if (vm == nullptr || !vm->job) return Error{ErrorCode::not_found, "no job"};
    JobStatus status = vm->status;
    status.log_bytes = vm->log.size();
    return status;
  });
}

Result<void> FakeHostAgent::stop_job(const std::string& vm_id) {
  return call<void>("stop_job", [&]() -> Result<void> {
    Vm* const vm = find(vm_id);
    if (vm == nullptr || !vm->job) return no_vm();
    if (is_over(vm->status)) return {};
    vm->status.state = JobState::exited;
    vm->status.reason = "stopped";
    vm->status.exit_code = 143;
    vm->status.signal = 15;
    changed_.notify_all();
    return {};
  });
}

Result<LogRange> FakeHostAgent::logs(const std::string& vm_id, const LogQuery& query,
                                     const ByteSink& sink, std::stop_token stop) {
  std::unique_lock lock(mutex_);
  const auto look = [&]() -> const Vm* {
    const Vm* const vm = find(vm_id);
    if (vm != nullptr) return vm;
    const auto gone = gone_.find(vm_id);
    return gone == gone_.end() ? nullptr : &gone->second;
  };
  const Vm* vm = look();
  if (vm == nullptr || !vm->job) return Error{ErrorCode::not_found, "no log"};
  LogRange range;
  range.begin = query.tail ? start_of_tail(vm->log, *query.tail)
                           : std::min<std::uint64_t>(query.offset, vm->log.size());
  range.end = range.begin;
  for (;;) {
    vm = look();
    if (vm == nullptr) return range;
    if (range.end < vm->log.size()) {
      const std::string bytes = vm->log.substr(range.end);
      range.end += bytes.size();
      lock.unlock();
      const bool more = sink(bytes);
      lock.lock();
      if (!more) return range;
      continue;
    }
    if (!query.follow || is_over(vm->status) || stop.stop_requested()) return range;
    changed_.wait(lock, stop, [&] {
      const Vm* const now = look();
      return now == nullptr || is_over(now->status) || range.end < now->log.size();
    });
  }
}

}  // namespace fuse
