#include "orchestrator/rows.h"

namespace fuse {

std::string_view to_string(OperationKind kind) {
  switch (kind) {
    case OperationKind::create:
      return "create";
    case OperationKind::watch:
      return "watch";
    case OperationKind::destroy:
      return "destroy";
  }
  return "create";
}

std::optional<OperationKind> operation_kind_of(std::string_view text) {
  for (const auto kind : {OperationKind::create, OperationKind::watch, OperationKind::destroy}) {
    if (to_string(kind) == text) return kind;
  }
  return std::nullopt;
}

}  // namespace fuse
