#pragma once

#include <string>

#include "tests/hostmode/devices/sim_box.h"

namespace fuse {

// Machines that people have, in the layout that their kernels show.
void make_a100_box(SimBox& box);              // 4 A100 with 2 NVSwitches, no driver trouble
void make_h100_box(SimBox& box);              // 8 H100 SXM on two nodes, 4 NVSwitches
void make_consumer_box(SimBox& box);          // RTX with audio, USB and USB-C functions
void make_shared_group_box(SimBox& box);      // two V100 in one group
void make_bridge_box(SimBox& box);            // the port is in the card's group
void make_nvme_box(SimBox& box);              // an NVMe is in the card's group
void make_amd_box(SimBox& box);               // a Radeon, no NVIDIA card
void make_display_box(SimBox& box);           // a console card and an A100
void make_virtual_function_box(SimBox& box);  // an A100 with virtual functions

// The CSV that nvidia-smi prints: a row each of index, uuid, name, address (as
// nvidia-smi writes it), memory, driver, compute capability, MIG mode now and then.
std::string smi_csv_of(const std::vector<std::string>& rows);

}  // namespace fuse
