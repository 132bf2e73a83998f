#include "hostmode/qemu_user.h"

#include "base/text.h"

namespace fuse {

namespace {

// The user of a line of passwd(5): name:password:uid:gid:...
std::optional<QemuUser> user_in(const std::string& line) {
  const auto fields = split(line, ':');
  if (fields.size() < 4) return std::nullopt;
  const auto uid = parse_int(fields[2]);
  const auto gid = parse_int(fields[3]);
  if (!uid || !gid || *uid < 0 || *gid < 0) return std::nullopt;
  return QemuUser{
      .name = fields[0], .uid = static_cast<uid_t>(*uid), .gid = static_cast<gid_t>(*gid)};
}

std::optional<QemuUser> user_named(const std::string& passwd, std::string_view name) {
  for (const std::string& line : split(passwd, '\n')) {
    auto user = user_in(line);
    if (user && user->name == name) return user;
  }
  return std::nullopt;
}

}  // namespace

Result<std::optional<QemuUser>> find_qemu_user(Host& host, const std::string& wanted, uid_t ours) {
  if (wanted == "root" || ours != 0) return std::optional<QemuUser>();
  const auto passwd = host.read_file("/etc/passwd");
  if (!passwd && !wanted.empty()) return passwd.error();
  if (!passwd) return std::optional<QemuUser>();
  if (wanted.empty()) {
    auto own = user_named(*passwd, "fuse-qemu");
    return own ? own : user_named(*passwd, "nobody");
  }
  auto user = user_named(*passwd, wanted);
  if (user) return user;
  return Error{ErrorCode::invalid_argument,
               cat("QEMU cannot run as \"", wanted, "\": /etc/passwd has no such user"),
               {{"hint", cat("useradd --system --shell /usr/sbin/nologin ", wanted)}}};
}

}  // namespace fuse
