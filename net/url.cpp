#include "net/url.h"

#include <algorithm>

#include "base/text.h"

namespace fuse {

namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

std::string form_decode(std::string_view text) {
  std::string blanks(text);
  std::ranges::replace(blanks, '+', ' ');
  return percent_decode(blanks);
}

bool is_host_character(char c) {
  return is_unreserved(c) || c == ':' || c == '%';
}

Error bad_url(std::string_view text, std::string_view why) {
  return {ErrorCode::invalid_argument, cat("\"", text, "\" is not an address: ", why)};
}

// "host", "host:port" or "[v6]:port" into `url`; false when it is none of these.
bool take_authority(std::string_view authority, Url& url) {
  std::size_t host_end = 0;
  if (authority.starts_with('[')) {
    const std::size_t bracket = authority.find(']');
    if (bracket == std::string_view::npos) return false;
    url.host = authority.substr(1, bracket - 1);
    host_end = bracket + 1;
  } else {
    host_end = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, host_end);
  }
  const std::string_view rest = authority.substr(host_end);
  if (!rest.empty()) {
    const auto port = parse_int(rest.substr(1));
    if (rest[0] != ':' || !port || *port < 1 || *port > 65535) return false;
    url.port = rest.substr(1);
  }
  return !url.host.empty() && std::ranges::all_of(url.host, is_host_character);
}

}  // namespace

std::string percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 &&
                        hex_value(text[i + 2]) >= 0;
    if (escape) {
      out += static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (is_unreserved(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += digits[byte >> 4U];
      out += digits[byte & 15U];
    }
  }
  return out;
}

Query::Query(std::string_view encoded) {
  if (encoded.empty()) return;
  for (const std::string& item : split(encoded, '&')) {
    if (item.empty()) continue;
    const std::size_t equals = std::min(item.find('='), item.size());
    const std::string_view view = item;
    items_.emplace_back(form_decode(view.substr(0, equals)),
                        form_decode(view.substr(std::min(equals + 1, view.size()))));
  }
}

std::optional<std::string> Query::get(std::string_view name) const {
  for (const auto& [key, value] : items_) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::vector<std::string> Query::all(std::string_view name) const {
  std::vector<std::string> values;
  for (const auto& [key, value] : items_) {
    if (key == name) values.push_back(value);
  }
  return values;
}

void Query::add(std::string name, std::string value) {
  items_.emplace_back(std::move(name), std::move(value));
}

std::string Query::encode() const {
  std::string out;
  for (const auto& [key, value] : items_) {
    if (!out.empty()) out += '&';
    out += cat(percent_encode(key), "=", percent_encode(value));
  }
  return out;
}

Result<Url> parse_url(std::string_view text) {
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos) return bad_url(text, "it has to begin with http://");
  Url url;
  url.scheme = lowercase(text.substr(0, colon));
  if (url.scheme != "http" && url.scheme != "https") {
    return bad_url(text, "only http and https are supported");
  }
  std::string_view rest = text.substr(colon + 3);
  if (rest.find_first_of("?#") != std::string_view::npos) {
    return bad_url(text, "it must not have a query or a fragment");
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view authority = rest.substr(0, slash);
  if (authority.find('@') != std::string_view::npos) {
    return {Error{ErrorCode::invalid_argument, "an address must not hold credentials"}};
  }
  if (!take_authority(authority, url)) return bad_url(text, "its host or port is malformed");
  url.path = rest.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  const bool clean = std::ranges::all_of(url.path, [](char c) { return c > ' ' && c < 0x7F; });
  if (!clean) return bad_url(text, "its path holds a blank or a character beyond ASCII");
  return url;
}

}  // namespace fuse
