#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fuse {

// What `nvidia-smi mig` prints, which is for people: tables whose columns move
// between drivers, and sentences.  A text that holds neither the table nor the
// sentence that there is none is an error that quotes it.

struct GiProfile {  // -lgip
  int gpu = 0;
  std::string name{};  // "1g.10gb+me"
  int id = 0;          // of this family of cards
  int free = 0;        // some drivers print 0 whatever is free
  int total = 0;
  std::string memory_gib{};  // differs between drivers
  int multiprocessors = 0;
};
Result<std::vector<GiProfile>> parse_gi_profiles(std::string_view text);

struct GiPlacements {  // -lgipp
  int gpu = 0;
  int profile = 0;
  std::vector<int> starts{};
  int size = 0;
};
Result<std::vector<GiPlacements>> parse_gi_placements(std::string_view text);

struct GpuInstance {  // -lgi
  int gpu = 0;
  std::string name{};
  int profile = 0;
  int id = 0;  // says nothing about where it lies
  int start = 0;
  int size = 0;
};
Result<std::vector<GpuInstance>> parse_gpu_instances(std::string_view text);

struct ComputeInstance {  // -lci
  int gpu = 0;
  int instance = 0;  // the GPU instance that it is in
  std::string name{};
  int profile = 0;
  int id = 0;
};
Result<std::vector<ComputeInstance>> parse_compute_instances(std::string_view text);

// -cgi: what was made, line by line, and what was refused.  Not atomic: what was
// made stays when a later one is refused.
struct CreationReport {
  std::vector<int> gpu_instances{};
  std::vector<int> with_compute{};  // those that got a compute instance too
  std::vector<std::string> complaints{};
};
CreationReport parse_creation(std::string_view text);

// -L
struct MigDevice {
  std::string profile{};
  int number = 0;  // changes when others come and go
  std::string uuid{};
};
struct ListedGpu {
  int index = 0;
  std::string model{};
  std::string uuid{};
  std::vector<MigDevice> devices{};
};
std::vector<ListedGpu> parse_listing(std::string_view text);

// -q: which instance is behind the MIG device of a number.
struct MigDeviceIds {
  int number = 0;
  int gpu_instance = 0;
  int compute_instance = 0;
};
struct QueriedGpu {
  std::string address{};
  std::vector<MigDeviceIds> devices{};
};
std::vector<QueriedGpu> parse_mig_query(std::string_view text);

}  // namespace fuse
