#include "cmd/agent_settings.h"

#include <set>

#include "tests/cmd/world.h"

namespace fuse::cmd {
namespace {

// Settings as they come from the three places.
struct SettingsWorld {
  SettingFlags flags{};
  std::map<std::string, std::string> variables{{"QEMU_AGENT_TOKEN", "sesame"}};
  TestFolder folder{};
  PosixHost host{};

  Result<AgentSettings> read(const std::string& file_text = "") {
    folder.write("agent.env", file_text);
    flags.file = (folder.path() / "agent.env").native();
    return read_agent_settings(
        flags,
        [this](const std::string& name) -> std::optional<std::string> {
          const auto found = variables.find(name);
          return found == variables.end() ? std::nullopt : std::optional(found->second);
        },
        host);
  }
  std::string refusal(const std::string& file_text = "") {
    const auto settings = read(file_text);
    if (settings) FAIL("it was not refused");
    std::string text = settings.error().message;
    const std::string name = (folder.path() / "agent.env").native();
    if (const auto at = text.find(name); at != std::string::npos) {
      text.replace(at, name.size(), "FILE");
    }
    return text;
  }
};

}  // namespace

TEST_CASE("an agent's settings have the defaults that operators know") {
  SettingsWorld world;
  const auto settings = world.read();
  if (!settings) FAIL(settings.error().message);
  CHECK(settings->token == "sesame");
  CHECK(settings->listen == "0.0.0.0");
  CHECK(settings->port == 8091);
  CHECK_FALSE(settings->tls);
  CHECK(settings->dir == "/var/lib/fuse");
  CHECK(settings->images_dir == "/var/lib/fuse/images");
  CHECK(settings->fused_port == 9550);
  CHECK(settings->host_port_base == 19650);
  CHECK(settings->most_body == 1'048'576);
  CHECK(settings->most_upload == 67'108'864);
  CHECK(settings->request_timeout == std::chrono::seconds(60));
}

TEST_CASE("a flag goes before a variable, and a variable before the file") {
  SettingsWorld world;
  world.flags.values.emplace("QEMU_AGENT_PORT", "1");
  world.variables["QEMU_AGENT_PORT"] = "2";
  world.variables["FUSED_PORT"] = "22";
  world.variables["QEMU_DIR"] = "/srv/./vms/";
  const auto settings = world.read(
      "# what this box is\n\nQEMU_AGENT_PORT=3\n FUSED_PORT = 33 \n"
      "FUSE_HOST_PORT_BASE=\"333\"\nPUBLIC_HOST='gpu-1.example.org'\nFUSE_LOG_FORMAT=json\n");
  if (!settings) FAIL(settings.error().message);
  CHECK(settings->port == 1);
  CHECK(settings->fused_port == 22);
  CHECK(settings->host_port_base == 333);
  CHECK(settings->public_host == "gpu-1.example.org");
  CHECK(settings->log_format == LogFormat::json);
  CHECK(settings->dir.lexically_relative("/srv/vms").native().size() <= 2);
  CHECK(settings->images_dir.filename() == "images");
}

TEST_CASE("a setting that cannot be meant is refused, by the name it was given by") {
  SettingsWorld world;
  CHECK(world.refusal("QEMU_AGENT_PORT=http\n") ==
        "QEMU_AGENT_PORT in FILE must be a whole number from 0 to 65535, got \"http\"");
  CHECK(world.refusal("FUSED_PORT=0\n") ==
        "FUSED_PORT in FILE must be a whole number from 1 to 65535, got \"0\"");
  CHECK(world.refusal("just words\n") == "FILE:1: want NAME=VALUE, got \"just words\"");
  CHECK(world.refusal("\n# x\nQEMU_PORT=1\n") == "FILE:3: QEMU_PORT is no setting of the agent");
  world.variables["QEMU_DIR"] = "vms";
  CHECK(world.refusal() == "QEMU_DIR must be an absolute path, got \"vms\"");
  world.variables.erase("QEMU_DIR");
  world.flags.values.emplace("FUSE_ACCEL", "fast");
  CHECK(world.refusal() == "--accel must be one of auto, kvm, tcg, got \"fast\"");
}

TEST_CASE("an agent without a token does not start, and the token is never a flag") {
  SettingsWorld world;
  world.variables.clear();
  CHECK(world.refusal() ==
        "the agent has no token: set QEMU_AGENT_TOKEN, or name a file with --token-file");
  CHECK(world.read("QEMU_AGENT_TOKEN=from-the-file\n").value().token == "from-the-file");
  world.folder.write("token", "from a file of its own\n");
  world.flags.values.emplace("QEMU_AGENT_TOKEN_FILE", (world.folder.path() / "token").native());
  CHECK(world.refusal().find("no blanks") != std::string::npos);
  world.folder.write("token", "s3cret\n");
  CHECK(world.read("QEMU_AGENT_TOKEN=from-the-file\n").value().token == "s3cret");
  for (const Setting& setting : agent_setting_file().settings) {
    CHECK(setting.variable != "QEMU_AGENT_TOKEN");
  }
}

TEST_CASE("a certificate and its key come together") {
  SettingsWorld world;
  CHECK(world.refusal("QEMU_AGENT_TLS_CERT=/a\n") ==
        "QEMU_AGENT_TLS_CERT in FILE needs --tls-key beside it");
  CHECK(world.refusal("QEMU_AGENT_TLS_KEY=/a\n") ==
        "QEMU_AGENT_TLS_KEY in FILE needs --tls-cert beside it");
  const auto both = world.read("QEMU_AGENT_TLS_CERT=/a\nQEMU_AGENT_TLS_KEY=/b\n");
  REQUIRE(both);
  CHECK(both->tls.value().certificate == "/a");
  CHECK(both->tls.value().key == "/b");
}

TEST_CASE("every variable and every flag of the agent is there once, and known to the file") {
  std::set<std::string_view> variables;
  std::set<std::string_view> flags;
  for (const Setting& setting : agent_setting_file().settings) {
    CHECK(variables.insert(setting.variable).second);
    CHECK(flags.insert(setting.flag).second);
    CHECK(parse_settings(std::string(setting.variable) + "=x", "f",
                         {"the agent", agent_setting_file().settings, {}})
              .has_value());
  }
  for (const char* const known :
       {"QEMU_DIR", "BASE_ROOTFS", "IMAGES_DIR", "OVMF_CODE", "QEMU_BIN", "VFIO_INVENTORY",
        "MIG_INVENTORY", "MIG_LIFECYCLE_MANAGED", "MIG_SETUP_SCRIPT", "FUSED_PORT",
        "FUSE_HOST_PORT_BASE", "PUBLIC_HOST", "QEMU_AGENT_PORT", "QEMU_AGENT_MAX_BODY_BYTES",
        "QEMU_AGENT_MAX_UPLOAD_BYTES", "QEMU_AGENT_REQUEST_TIMEOUT"}) {
    CHECK(variables.contains(known));
  }
}

TEST_CASE("settings that mean nothing to this agent are taken and told of") {
  SettingsWorld world;
  world.flags.values.emplace("MIG_LIFECYCLE_MANAGED", "1");
  world.variables["MIG_SETUP_SCRIPT"] = "/opt/mig.sh";
  const auto settings = world.read();
  REQUIRE(settings);
  CHECK(settings->without_effect ==
        std::vector<std::string>{"--mig-lifecycle-managed", "MIG_SETUP_SCRIPT"});
}

TEST_CASE("host mode and agent serve are the same, and say what is missing") {
  World world;
  CHECK(world.fuse({"--host-mode"}) == failed);
  const std::string spelled = world.err.str();
  CHECK(spelled.find("the agent has no token") != std::string::npos);
  world.err.str("");
  CHECK(world.fuse({"agent", "serve"}) == failed);
  CHECK(world.err.str() == spelled);
  world.variables["QEMU_AGENT_TOKEN"] = "sesame";
  world.variables["PUBLIC_HOST"] = "not a name";
  world.err.str("");
  CHECK(world.fuse({"--host-mode", "--dir", (world.folder.path() / "d").native()}) == failed);
  CHECK(world.err.str().find("PUBLIC_HOST must be an IP address or a DNS name") !=
        std::string::npos);
}

}  // namespace fuse::cmd
