#include "hostmode/cloud_seed.h"

#include <array>

#include "base/text.h"
#include "guest/channel/names.h"
#include "hostmode/iso_image.h"
#include "hostmode/vm_paths.h"

namespace fuse {
namespace {

// At every boot, so that what is there is always the host's version.  The disk goes by
// the label by which cloud-init has found it.
constexpr std::string_view user_data = R"(#cloud-config
manage_etc_hosts: localhost
bootcmd:
  - |
    disk=/run/fuse-seed
    mkdir -p $disk
    if mount -t iso9660 -o ro LABEL=cidata $disk; then
      install -D -m 0755 $disk/fuse-guest /usr/local/sbin/fuse-guest
      install -m 0644 $disk/fuse-guest.service /etc/systemd/system/fuse-guest.service
      umount $disk
      systemctl daemon-reload
      systemctl enable fuse-guest.service
      systemctl start --no-block fuse-guest.service
    fi
)";

// After cloud-init has grown the root and set up the network.  Ended early when the guest
// shuts down: a job that is killed then has not exited, its machine is gone.
constexpr std::string_view service = R"([Unit]
Description=fuse guest agent
DefaultDependencies=no
After=local-fs.target cloud-init.service cloud-init-network.service
Conflicts=shutdown.target
Before=shutdown.target
IgnoreOnIsolate=yes
StartLimitIntervalSec=0

[Service]
ExecStart=/usr/local/sbin/fuse-guest
Restart=always
RestartSec=1
KillMode=process
TasksMax=infinity

[Install]
WantedBy=multi-user.target
)";

}  // namespace

// JSON, which is YAML.  Neither a uid nor a VM's id has a character that means anything
// in it.
std::string cloud_meta_data(const VmRecord& vm) {
  return cat(R"({"instance-id": ")", vm.uid, R"(", "local-hostname": ")", guest_host_name(vm.vm_id),
             "\"}\n");
}

std::string cloud_seed_disk(const VmRecord& vm, std::string_view program) {
  const std::string meta_data = cloud_meta_data(vm);
  const std::array<IsoFile, 4> files = {{{"meta-data", meta_data},
                                         {"user-data", user_data},
                                         {"fuse-guest.service", service},
                                         {guest_program_name, program}}};
  return iso_image("cidata", files);
}

}  // namespace fuse
