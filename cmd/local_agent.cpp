#include "cmd/local_agent.h"

#include "base/text.h"
#include "base/version.h"
#include "hostmode/agent.h"
#include "hostmode/image_store.h"

namespace fuse::cmd {

namespace {

class QemuLocalAgent final : public LocalAgent {
 public:
  static Result<std::unique_ptr<LocalAgent>> start(ImageStoreConfig images, AgentConfig config,
                                                   const Context& context, Log& log,
                                                   std::function<void()> on_end) {
    // The agent keeps a way to the store, so the store comes first and stays put.
    std::unique_ptr<QemuLocalAgent> made(new QemuLocalAgent(std::move(images)));
    AgentWorld world{.host = context.host,
                     .clock = context.clock,
                     .log = log,
                     .resolve_image = [&store = made->images_](
                                          const std::string& name) { return store.resolve(name); },
                     .on_end = std::move(on_end)};
    auto agent = Agent::start(std::move(world), std::move(config));
    if (!agent) return agent.error();
    made->agent_ = std::move(*agent);
    return std::unique_ptr<LocalAgent>(std::move(made));
  }

  [[nodiscard]] HostAgent agent() override { return agent_->interfaces(); }
  [[nodiscard]] std::set<fs::path> images_in_use() const override {
    return agent_->images_in_use();
  }
  void look_after_vms() override { agent_->look_after_vms(); }

 private:
  explicit QemuLocalAgent(ImageStoreConfig images) : images_(std::move(images)) {}

  ImageStore images_;
  std::unique_ptr<Agent> agent_{};
};

}  // namespace

ImageStoreConfig image_store_config(const Config& config) {
  return {.dir = config.images_dir, .agent_build = build_id()};
}

Result<std::unique_ptr<LocalAgent>> make_local_agent(const Config& config, const LocalPaths& paths,
                                                     const Context& context, Log& log,
                                                     std::function<void()> on_end) {
  AgentConfig agent{.state_dir = paths.agent_state()};
  // A user's VMs share the machine with each other as programs do.
  agent.cpu_share = 4;
  if (const auto path = context.variables("PATH"); path && !path->empty()) agent.path = *path;
  if (const auto qemu = context.variables("QEMU_BIN"); qemu && !qemu->empty()) agent.qemu = *qemu;
  if (const auto user = context.variables("FUSE_QEMU_USER")) agent.qemu_user = *user;
  if (const auto ovmf = context.variables("OVMF_CODE")) agent.ovmf_code = *ovmf;
  if (!config.accel.empty()) {
    const auto policy = accel_policy_of(config.accel);
    if (!policy) {
      return Error{ErrorCode::invalid_argument,
                   cat("FUSE_ACCEL must be auto, tcg or kvm, got \"", config.accel, "\"")};
    }
    agent.accel = *policy;
  }
  return QemuLocalAgent::start(image_store_config(config), std::move(agent), context, log,
                               std::move(on_end));
}

}  // namespace fuse::cmd
