#include "cmd/copy_place.h"

#include "base/text.h"
#include "cmd/output.h"

namespace fuse::cmd {

namespace {

Error refuse(std::string message, std::string hint = "") {
  Error error{ErrorCode::invalid_argument, std::move(message)};
  if (!hint.empty()) error.details["hint"] = std::move(hint);
  return error;
}

// Without slashes at its end and a last "." ; notes what they said.
void trim_end(CopyPlace& place) {
  std::string& path = place.path;
  for (bool more = true; more;) {
    more = false;
    while (path.size() > 1 && path.ends_with('/')) {
      path.pop_back();
      place.wants_folder = more = true;
    }
    if (path.ends_with("/.")) {
      path.pop_back();
      place.contents = more = true;
    }
  }
  if (path == ".") place.contents = true;
}

std::string shown(const CopyPlace& place, std::string_view path) {
  return place.id.empty() ? printable(path) : printable(cat(place.id, ":", path));
}

}  // namespace

Result<CopyPlace> parse_copy_place(const std::string& text) {
  CopyPlace place;
  const std::size_t colon = text.find(':');
  const std::size_t slash = text.find('/');
  const bool is_far = colon != std::string::npos && colon > 0 && colon < slash;
  place.path = is_far ? text.substr(colon + 1) : text;
  if (is_far) place.id = text.substr(0, colon);
  if (place.path.empty()) {
    return refuse(is_far ? cat("which file of ", printable(place.id), "? There is nothing behind ",
                               "the colon")
                         : std::string("an empty path names no file"));
  }
  if (is_far && place.path.front() != '/') {
    return refuse(cat("a path in an environment begins with /: ", printable(text)),
                  cat("a file of this machine with a colon in its name: ./", printable(text)));
  }
  if (place.path.find('\0') != std::string::npos) return refuse("a path holds no NUL");
  if (!place.is_stream()) trim_end(place);
  return place;
}

std::string last_name(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string parent_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

std::string below(std::string_view path, std::string_view name) {
  return cat(path, path.ends_with('/') ? "" : "/", name);
}

Result<std::string> copy_target(const CopyPlace& to, CopyKind kind, bool source_is_folder,
                                std::string_view name) {
  const std::string where = shown(to, to.path);
  switch (kind) {
    case CopyKind::folder:
      return name.empty() ? to.path : below(to.path, name);
    case CopyKind::no_folder:
      return refuse(cat("there is no folder ", shown(to, parent_of(to.path))),
                    to.id.empty() ? cat("make it: mkdir -p ", shell_quote(parent_of(to.path)))
                                  : cat("make it: fuse exec ", to.id, " -- mkdir -p ",
                                        shell_quote(parent_of(to.path))));
    case CopyKind::other:
      // Ours may be written to: a terminal, /dev/null.
      if (to.id.empty() && !source_is_folder) return to.path;
      return refuse(cat(where, " is neither a file nor a folder"));
    case CopyKind::file:
    case CopyKind::dangling:
      if (source_is_folder || to.wants_folder || to.contents) {
        return refuse(cat(where, " is not a folder"));
      }
      return to.path;
    case CopyKind::none:
      if (!source_is_folder && (to.wants_folder || to.contents)) {
        return refuse(cat("there is no folder ", where));
      }
      return to.path;
  }
  return to.path;
}

}  // namespace fuse::cmd
