#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace fuse {

// %XX decoded; a % without two hex digits stays as it is.
std::string percent_decode(std::string_view text);
// Everything but letters, digits and -._~ as %XX: for one path segment or one
// query value.
std::string percent_encode(std::string_view text);

// The parameters of a query, form-decoded (+ is a blank), in their order.
class Query {
 public:
  Query() = default;
  explicit Query(std::string_view encoded);

  // The first of that name.
  [[nodiscard]] std::optional<std::string> get(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> all(std::string_view name) const;
  void add(std::string name, std::string value);
  // "a=1&b=x%20y", or "" without parameters.
  [[nodiscard]] std::string encode() const;
  using Item = std::pair<std::string, std::string>;
  [[nodiscard]] const std::vector<Item>& items() const& { return items_; }
  [[nodiscard]] std::vector<Item> items() && { return std::move(items_); }

 private:
  std::vector<Item> items_{};
};

// The parts of an absolute http or https address.
struct Url {
  std::string scheme{};  // lower case
  std::string host{};    // without the brackets of an IPv6 address
  std::string port{};    // empty: the scheme's
  std::string path{};    // without a trailing slash
};

// invalid_argument when it is not http or https, has no host, or carries user
// info, a query or a fragment.
Result<Url> parse_url(std::string_view text);

}  // namespace fuse
