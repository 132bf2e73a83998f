#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuse {

// Header fields.  Those of one name stand in the order of the wire.  Names are
// compared without regard to case.
class HttpHeaders {
 public:
  using Field = std::pair<std::string, std::string>;

  HttpHeaders() = default;
  HttpHeaders(std::initializer_list<Field> fields) : fields_(fields) {}

  // The first field of that name.
  [[nodiscard]] std::optional<std::string> get(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> all(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const { return get(name).has_value(); }
  // Whether `token` stands in one of the comma-separated lists of that name, as
  // in `Connection: keep-alive, Upgrade`; also without regard to case.
  [[nodiscard]] bool has_token(std::string_view name, std::string_view token) const;

  void add(std::string name, std::string value);
  // Replaces every field of that name.
  void set(std::string_view name, std::string value);
  void remove(std::string_view name);

  [[nodiscard]] const std::vector<Field>& fields() const& { return fields_; }
  [[nodiscard]] std::vector<Field> fields() && { return std::move(fields_); }

 private:
  std::vector<Field> fields_{};
};

}  // namespace fuse
