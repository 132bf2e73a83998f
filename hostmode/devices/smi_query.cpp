#include "hostmode/devices/smi_query.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace fuse {

namespace {

constexpr std::string_view all_fields =
    "index,uuid,name,pci.bus_id,memory.total,driver_version,compute_cap,mig.mode.current,"
    "mig.mode.pending";
// Drivers before 470 know no compute_cap, those before 450 no MIG.
constexpr std::string_view old_fields = "index,uuid,name,pci.bus_id,memory.total,driver_version";

Result<SmiCsv> query(Host& host, std::string_view fields) {
  const auto output = run_smi(host, {cat("--query-gpu=", fields), "--format=csv"});
  if (!output) return output.error();
  SmiCsv csv = parse_smi_csv(output->out);
  if (const auto said = trim(output->err); !said.empty()) csv.remarks.emplace_back(said);
  return csv;
}

}  // namespace

Result<CommandOutput> run_smi(Host& host, std::vector<std::string> arguments) {
  std::vector<std::string> argv = {"nvidia-smi"};
  std::ranges::move(arguments, std::back_inserter(argv));
  // A card that is ill can keep it for minutes.
  return run_command(host, {.argv = std::move(argv)}, {}, {.timeout = std::chrono::minutes(2)});
}

const SmiGpu* SmiView::find(const std::string& address) const {
  const auto found = std::ranges::find(gpus, address, &SmiGpu::address);
  return found == gpus.end() ? nullptr : &*found;
}

SmiView query_smi(Host& host) {
  SmiView view;
  for (const std::string_view fields : {all_fields, old_fields}) {
    auto csv = query(host, fields);
    if (!csv) {
      if (csv.error().code != ErrorCode::not_found) view.remarks.push_back(csv.error().message);
      return view;
    }
    view.there = true;
    view.gpus = smi_gpus(*csv);
    view.remarks = std::move(csv->remarks);
    if (!csv->columns.empty()) break;
  }
  return view;
}

}  // namespace fuse
