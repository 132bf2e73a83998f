#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/hostmode/devices/sim_smi.h"

namespace fuse {

// A host whose kernel makes mediated devices of a card's MIG instances, in the
// folders of NVIDIA's vGPU driver: one for each virtual function.
class MdevSim {
 public:
  MdevSim(SimBox& box, SimSmi& smi, std::string card, std::vector<std::string> functions);
  [[nodiscard]] std::vector<std::string> devices() const;

 private:
  void obey(const std::string& path, const std::string& text);
  void refresh();

  SimBox& box_;
  SimSmi& smi_;
  std::string card_;
  std::vector<std::string> functions_;
  struct Device {
    std::string function{};
    std::string type{};
  };
  std::map<std::string, Device> devices_{};  // by UUID
};

// A host on which the vGPU type of a virtual function is set in its own folder.
class VendorVfioSim {
 public:
  VendorVfioSim(SimBox& box, SimSmi& smi, std::string card, std::vector<std::string> functions);
  [[nodiscard]] std::string type_of(const std::string& function) const;

 private:
  void refresh();

  SimBox& box_;
  SimSmi& smi_;
  std::string card_;
  std::vector<std::string> functions_;
};

// An A100 with two cards of which each is or can be in MIG mode, on such a host.
void add_mig_card(SimBox& box, const std::string& address, const std::string& device);
void add_virtual_functions(SimBox& box, const std::string& card,
                           const std::vector<std::string>& functions);

}  // namespace fuse
