#include "net/headers.h"

#include <algorithm>

#include "base/text.h"

namespace fuse {

std::optional<std::string> HttpHeaders::get(std::string_view name) const {
  for (const auto& [key, value] : fields_) {
    if (equal_ignoring_case(key, name)) return value;
  }
  return std::nullopt;
}

std::vector<std::string> HttpHeaders::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : fields_) {
    if (equal_ignoring_case(key, name)) values.push_back(value);
  }
  return values;
}

bool HttpHeaders::has_token(std::string_view name, std::string_view token) const {
  for (const std::string& list : all(name)) {
    for (const std::string& item : split(list, ',')) {
      if (equal_ignoring_case(trim(item), token)) return true;
    }
  }
  return false;
}

void HttpHeaders::add(std::string name, std::string value) {
  fields_.emplace_back(std::move(name), std::move(value));
}

void HttpHeaders::set(std::string_view name, std::string value) {
  remove(name);
  fields_.emplace_back(std::string(name), std::move(value));
}

void HttpHeaders::remove(std::string_view name) {
  std::erase_if(fields_,
                [&](const Field& field) { return equal_ignoring_case(field.first, name); });
}

}  // namespace fuse
