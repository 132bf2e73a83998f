#pragma once

#include <memory>

#include "base/result.h"

namespace fuse::cmd {

struct WindowSize {
  int rows = 0;  // 0: not known
  int cols = 0;
};

// Keys reach us one by one while it lives; dropping it restores the terminal.
class RawMode {
 public:
  virtual ~RawMode() = default;
};

// What the three standard streams are connected to.
class Terminal {
 public:
  virtual ~Terminal() = default;
  [[nodiscard]] virtual bool in_is_terminal() const = 0;
  [[nodiscard]] virtual bool out_is_terminal() const = 0;
  [[nodiscard]] virtual bool err_is_terminal() const = 0;
  [[nodiscard]] virtual WindowSize size() const = 0;
  // Standard input's, to poll and read.
  [[nodiscard]] virtual int input_fd() const = 0;
  virtual Result<std::unique_ptr<RawMode>> raw_mode() = 0;
};

class PosixTerminal final : public Terminal {
 public:
  [[nodiscard]] bool in_is_terminal() const override;
  [[nodiscard]] bool out_is_terminal() const override;
  [[nodiscard]] bool err_is_terminal() const override;
  [[nodiscard]] WindowSize size() const override;
  [[nodiscard]] int input_fd() const override;
  Result<std::unique_ptr<RawMode>> raw_mode() override;
};

}  // namespace fuse::cmd
