#pragma once

#include <initializer_list>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"

namespace fuse {

enum class LogLevel { debug, info, warning, error };
enum class LogFormat { text, json };

using LogField = std::pair<std::string_view, std::string>;

// Where a service writes what an operator should know.  Passed by reference;
// safe from several threads.  Never given a secret.
class Log {
 public:
  virtual ~Log() = default;
  virtual void write(LogLevel level, std::string_view message,
                     std::initializer_list<LogField> fields) = 0;

  void debug(std::string_view message, std::initializer_list<LogField> fields = {}) {
    write(LogLevel::debug, message, fields);
  }
  void info(std::string_view message, std::initializer_list<LogField> fields = {}) {
    write(LogLevel::info, message, fields);
  }
  void warning(std::string_view message, std::initializer_list<LogField> fields = {}) {
    write(LogLevel::warning, message, fields);
  }
  void error(std::string_view message, std::initializer_list<LogField> fields = {}) {
    write(LogLevel::error, message, fields);
  }
};

// One line an entry: "TIME LEVEL message key=value ...", values quoted when
// they hold blanks or quotes; or one JSON object a line {time, level, message,
// ...}.
class StreamLog final : public Log {
 public:
  StreamLog(std::ostream& out, const Clock& clock, LogFormat format, LogLevel least);
  void write(LogLevel level, std::string_view message,
             std::initializer_list<LogField> fields) override;

 private:
  std::mutex mutex_;
  std::ostream& out_;
  const Clock& clock_;
  LogFormat format_;
  LogLevel least_;
};

class NullLog final : public Log {
 public:
  void write(LogLevel /*level*/, std::string_view /*message*/,
             std::initializer_list<LogField> /*fields*/) override {}
};

}  // namespace fuse
