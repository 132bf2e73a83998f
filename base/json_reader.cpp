#include "base/json_reader.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"

namespace fuse {

using nlohmann::json;

namespace {

constexpr int deepest = 64;

// Keeps the text of the parser's own message without its bracketed number.
class ErrorCatcher final : public nlohmann::json_sax<json> {
 public:
  explicit ErrorCatcher(json& into) : builder_(into, false) {}
  std::string message;

  bool null() override { return builder_.null(); }
  bool boolean(bool v) override { return builder_.boolean(v); }
  bool number_integer(number_integer_t v) override { return builder_.number_integer(v); }
  bool number_unsigned(number_unsigned_t v) override { return builder_.number_unsigned(v); }
  bool number_float(number_float_t v, const string_t& s) override {
    return builder_.number_float(v, s);
  }
  bool string(string_t& v) override { return builder_.string(v); }
  bool binary(binary_t& v) override { return builder_.binary(v); }
  bool start_object(std::size_t n) override { return enter() && builder_.start_object(n); }
  bool key(string_t& v) override { return builder_.key(v); }
  bool end_object() override { return leave(builder_.end_object()); }
  bool start_array(std::size_t n) override { return enter() && builder_.start_array(n); }
  bool end_array() override { return leave(builder_.end_array()); }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& failure) override {
    const std::string_view what = failure.what();
    const std::size_t bracket = what.find("] ");
    message = what.substr(bracket == std::string_view::npos ? 0 : bracket + 2);
    return false;
  }

 private:
  bool enter() {
    if (++depth_ <= deepest) return true;
    message = cat("nested deeper than ", deepest);
    return false;
  }
  bool leave(bool result) {
    --depth_;
    return result;
  }

  nlohmann::detail::json_sax_dom_parser<json> builder_;
  int depth_ = 0;
};

}  // namespace

Result<json> parse_json(std::string_view text) {
  json value;
  ErrorCatcher catcher(value);
  if (json::sax_parse(text, &catcher)) return value;
  return Error{ErrorCode::invalid_argument,
               cat("invalid JSON body: ", valid_utf8(catcher.message))};
}

JsonReader::JsonReader(const json& value, std::string path)
    : value_(value), path_(std::move(path)) {
  if (!value.is_object()) {
    problem_ = Error{ErrorCode::invalid_argument,
                     cat(path_.empty() ? "the body" : path_, ": must be an object")};
  }
}

std::string JsonReader::path_of(std::string_view key) const {
  return path_.empty() ? std::string(key) : cat(path_, ".", key);
}

const json* JsonReader::find(std::string_view key) const {
  if (!value_.is_object()) return nullptr;
  const auto it = value_.find(std::string(key));
  return it == value_.end() || it->is_null() ? nullptr : &*it;
}

bool JsonReader::has(std::string_view key) const {
  return find(key) != nullptr;
}

std::optional<std::string> JsonReader::text(std::string_view key) {
  const json* const found = find(key);
  if (found == nullptr) return std::nullopt;
  if (found->is_string()) return found->get<std::string>();
  complain(key, "must be a string");
  return std::nullopt;
}

std::optional<std::int64_t> JsonReader::integer(std::string_view key) {
  const json* const found = find(key);
  if (found == nullptr) return std::nullopt;
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool fits = found->is_number_integer() &&
                    (!found->is_number_unsigned() || found->get<std::uint64_t>() <= most);
  if (fits) return found->get<std::int64_t>();
  complain(key, "must be a whole number");
  return std::nullopt;
}

std::optional<bool> JsonReader::flag(std::string_view key) {
  const json* const found = find(key);
  if (found == nullptr) return std::nullopt;
  if (found->is_boolean()) return found->get<bool>();
  complain(key, "must be true or false");
  return std::nullopt;
}

std::optional<std::vector<std::string>> JsonReader::texts(std::string_view key) {
  if (!has(key)) return std::nullopt;
  std::vector<std::string> out;
  for (const json* element : elements(key)) {
    if (!element->is_string()) {
      complain(key, "must be a list of strings");
      return std::nullopt;
    }
    out.push_back(element->get<std::string>());
  }
  return out;
}

std::optional<std::map<std::string, std::string>> JsonReader::text_map(std::string_view key) {
  const json* const found = object(key);
  if (found == nullptr) return std::nullopt;
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : found->items()) {
    if (!value.is_string()) {
      complain(cat(key, ".", name), "must be a string");
      return std::nullopt;
    }
    out.emplace(name, value.get<std::string>());
  }
  return out;
}

const json* JsonReader::object(std::string_view key) {
  const json* const found = find(key);
  if (found == nullptr || found->is_object()) return found;
  complain(key, "must be an object");
  return nullptr;
}

std::vector<const json*> JsonReader::elements(std::string_view key) {
  std::vector<const json*> out;
  const json* const found = find(key);
  if (found == nullptr) return out;
  if (!found->is_array()) {
    complain(key, "must be a list");
    return out;
  }
  out.reserve(found->size());
  for (const json& element : *found) out.push_back(&element);
  return out;
}

void JsonReader::complain(std::string_view key, std::string_view problem) {
  if (problem_) return;
  problem_ = Error{ErrorCode::invalid_argument, cat(path_of(key), ": ", problem)};
}

void JsonReader::complain_with(const Error& problem) {
  if (!problem_) problem_ = problem;
}

Result<void> JsonReader::finish() const {
  if (problem_) return *problem_;
  return {};
}

}  // namespace fuse
