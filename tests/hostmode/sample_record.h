#pragma once

#include "hostmode/vm_record.h"

namespace fuse {

inline VmRecord sample_record() {
  return {.uid = "01ARZ3NDEKTSV4RRFFQ69G5FAV",
          .vm_id = "fuse-train",
          .name = "fuse-train",
          .cluster = "c",
          .idempotency_key = "k",
          .region = "r",
          .image = {.name = "base",
                    .kernel = "/images/kernel",
                    .initrd = "/images/initrd",
                    .disk = "/images/disk",
                    .has_root = true,
                    .init = ""},
          .cpus = 2,
          .memory_mb = 2048,
          .storage_gb = 10,
          .accel = Accel::kvm,
          .net = NetMode::user,
          .created_at = "2026-11-30T15:00:00Z"};
}

}  // namespace fuse
