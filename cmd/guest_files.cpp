#include "cmd/guest_files.h"

#include "base/ids.h"
#include "base/text.h"
#include "cmd/output.h"

namespace fuse::cmd {

namespace {

constexpr std::uint32_t plain_mode = 0644;

constexpr std::string_view look = R"sh(if [ -d "$1" ]; then echo folder
elif [ -f "$1" ]; then echo "file $(stat -L -c %a "$1" 2>/dev/null)"
elif [ -e "$1" ]; then echo other
elif [ -L "$1" ]; then echo dangling
elif [ -d "$2" ]; then echo none
else echo no-folder
fi)sh";

// Beside the file first: a file that is there stays until another can take its place.
constexpr std::string_view put = R"sh(cat >"$1" && chmod "$2" "$1" && mv -f "$1" "$3")sh";

constexpr std::string_view put_tree = R"sh(mkdir -p "$1" && exec tar -x -p -f - -C "$1")sh";

std::vector<std::string> shell(std::string_view script, std::vector<std::string> arguments) {
  std::vector<std::string> argv = {"sh", "-c", std::string(script), "sh"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return argv;
}

std::optional<std::uint32_t> mode_of(std::string_view octal) {
  std::uint32_t mode = 0;
  if (octal.empty() || octal.size() > 5) return std::nullopt;
  for (const char digit : octal) {
    if (digit < '0' || digit > '7') return std::nullopt;
    mode = mode * 8 + static_cast<std::uint32_t>(digit - '0');
  }
  return mode;
}

std::string octal(std::uint32_t mode) {
  std::string digits;
  for (int shift = 9; shift >= 0; shift -= 3) {
    digits += static_cast<char>('0' + ((mode >> static_cast<unsigned>(shift)) & 7U));
  }
  return digits;
}

std::string last_line(std::string_view text) {
  text = trim(text);
  return printable(text.substr(text.rfind('\n') + 1));
}

}  // namespace

bool is_only_news(std::string_view complaint) {
  for (const std::string& line : split(trim(complaint), '\n')) {
    const bool news = line.ends_with("file changed as we read it") ||
                      line.ends_with("File removed before we read it") ||
                      line.ends_with("socket ignored");
    if (!news) return false;
  }
  return true;
}

Result<GuestCommandEnd> GuestFiles::run(std::vector<std::string> argv, const GuestInput& input,
                                        const ByteSink& output) {
  return run_in_guest(api_, id_,
                      {.argv = std::move(argv), .input = input, .output = output, .stop = stop_});
}

Error GuestFiles::failed(std::string_view what, const std::string& path,
                         const GuestCommandEnd& end) const {
  const std::string name = printable(cat(id_, ":", path));
  if (end.complaint.find("No space left on device") != std::string::npos) {
    return {ErrorCode::internal,
            cat("cannot ", what, " ", name, ": the disk of ", id_, " is full"),
            {{"hint", cat("what is on it: fuse exec ", id_, " -- df -h")}}};
  }
  const std::string said = last_line(end.complaint);
  return {ErrorCode::internal,
          cat("cannot ", what, " ", name, ": ",
              said.empty() ? cat("the command for it ended with ", end.code) : said)};
}

Result<GuestFile> GuestFiles::look_at(const std::string& path) {
  std::string said;
  const auto end = run(shell(look, {path, parent_of(path)}), {}, [&said](std::string_view bytes) {
    said += bytes;
    return said.size() < 100;
  });
  if (!end) return end.error();
  if (end->code != 0) return failed("look at", path, *end);
  const std::string_view word = trim(said);
  if (word.starts_with("file")) {
    return GuestFile{.kind = CopyKind::file,
                     .mode = mode_of(trim(word.substr(4))).value_or(plain_mode)};
  }
  if (word == "folder") return GuestFile{.kind = CopyKind::folder};
  if (word == "other") return GuestFile{.kind = CopyKind::other};
  if (word == "dangling") return GuestFile{.kind = CopyKind::dangling};
  if (word == "none") return GuestFile{.kind = CopyKind::none};
  return GuestFile{.kind = CopyKind::no_folder};
}

Result<void> GuestFiles::read(const std::string& path, const ByteSink& sink) {
  const auto end = run({"cat", path}, {}, sink);
  if (!end) return end.error();
  if (end->code != 0) return failed("read", path, *end);
  return {};
}

Result<std::string> GuestFiles::read_tree(const std::string& path, const ByteSink& sink) {
  auto end = run({"tar", "-c", "-f", "-", "-C", path, "."}, {}, sink);
  if (!end) return end.error();
  if (end->code == 0 || (end->code == 1 && is_only_news(end->complaint))) return end->complaint;
  return failed("read", path, *end);
}

Result<void> GuestFiles::write(const std::string& path, std::uint32_t mode,
                               const GuestInput& input) {
  const std::string beside = below(parent_of(path), cat(".fuse-cp-", random_hex(8)));
  const auto end = run(shell(put, {beside, octal(mode), path}), input, {});
  if (end && end->code == 0) return {};
  // Also when nobody waits any more.
  if (!end && end.error().code == ErrorCode::not_found) return end.error();
  (void)api_.exec(id_, {.cmd = {"rm", "-f", beside}, .timeout_ms = 5000});
  return end ? failed("write", path, *end) : end.error();
}

Result<void> GuestFiles::write_tree(const std::string& path, const GuestInput& archive) {
  const auto end = run(shell(put_tree, {path}), archive, {});
  if (!end) return end.error();
  if (end->code != 0) return failed("write", path, *end);
  return {};
}

}  // namespace fuse::cmd
