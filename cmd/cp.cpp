#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <memory>
#include <ostream>

#include "base/text.h"
#include "base/units.h"
#include "cmd/commands.h"
#include "cmd/guest_files.h"
#include "cmd/interruption.h"
#include "cmd/local_files.h"
#include "cmd/misuse.h"
#include "cmd/output.h"
#include "cmd/tree_pack.h"
#include "cmd/tree_unpack.h"

namespace fuse::cmd {

namespace {

// One copy: what it copies, between what.
struct Copy {
  Context& context;
  CopyPlace from;
  CopyPlace to;
  GuestFiles guest;
  Interruption& interruption;
};

Error not_there(std::string_view name) {
  return {ErrorCode::not_found, cat("there is no file or folder ", printable(name))};
}

std::string far_name(const CopyPlace& place) {
  return cat(place.id, ":", place.path);
}

fs::path here(const Copy& copy, const std::string& path) {
  return copy.context.directory / path;
}

std::string counted(std::uint64_t count, std::string_view what) {
  return cat(count, " ", what, count == 1 ? "" : "s");
}

void say_done(const Copy& copy, std::uint64_t files, std::uint64_t bytes, int skipped) {
  std::string text = cat(counted(files, "file"), ", ", human_bytes(bytes));
  if (skipped > 0) {
    text +=
        cat("; left out: ", counted(static_cast<std::uint64_t>(skipped), "device, pipe or socket"));
  }
  copy.context.note(text);
}

// From a guest.

Result<void> get_stream(Copy& copy) {
  return copy.guest.read(copy.from.path, [&copy](std::string_view bytes) {
    copy.context.out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    copy.context.out.flush();
    if (!copy.context.out.good()) copy.interruption.output_closed();
    return copy.context.out.good();
  });
}

Result<void> get_file(Copy& copy, const std::string& target, std::uint32_t mode) {
  auto writer = FileWriter::open(here(copy, target));
  if (!writer) return writer.error();
  std::optional<Error> problem;
  std::uint64_t size = 0;
  auto read = copy.guest.read(copy.from.path, [&](std::string_view bytes) {
    size += bytes.size();
    if (auto wrote = writer->write(bytes); !wrote) problem = wrote.error();
    return !problem;
  });
  if (problem) return *problem;
  if (!read) return read;
  if (auto done = writer->commit(mode); !done) return done;
  say_done(copy, 1, size, 0);
  return {};
}

Result<Fd> open_target_folder(const fs::path& target, bool& is_new) {
  is_new = ::mkdir(target.c_str(), 0700) == 0;
  if (!is_new && errno != EEXIST) {
    return errno_error(cat("create ", printable(target.native())), errno);
  }
  Fd folder(::open(target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) return folder;
  return errno_error(cat("open ", printable(target.native())), errno);
}

Result<void> get_tree(Copy& copy, const std::string& target) {
  bool is_new = false;
  auto folder = open_target_folder(here(copy, target), is_new);
  if (!folder) return folder.error();
  TreeUnpacker unpacker(*std::move(folder), is_new);
  TarReader reader(unpacker);
  std::optional<Error> problem;
  const auto news = copy.guest.read_tree(copy.from.path, [&](std::string_view bytes) {
    if (auto done = reader.feed(bytes); !done) problem = done.error();
    return !problem;
  });
  if (problem) return in_context(printable(target), *problem);
  if (!news) return news.error();
  if (!reader.is_complete()) {
    return Error{ErrorCode::internal, cat("the archive of ", far_name(copy.from), " broke off")};
  }
  if (auto done = unpacker.finish(); !done) return in_context(printable(target), done.error());
  if (!news->empty()) copy.context.note(cat("in the guest: ", valid_utf8(trim(*news))));
  say_done(copy, unpacker.files(), unpacker.bytes(), unpacker.skipped());
  return {};
}

Result<void> get(Copy& copy) {
  const auto found = copy.guest.look_at(copy.from.path);
  if (!found) return found.error();
  const std::string name = far_name(copy.from);
  switch (found->kind) {
    case CopyKind::file:
    case CopyKind::folder:
      break;
    case CopyKind::other:
      return Error{ErrorCode::invalid_argument,
                   cat(printable(name), " is neither a file nor a folder")};
    case CopyKind::dangling:
      return Error{ErrorCode::not_found, cat(printable(name), " is a link that leads nowhere")};
    case CopyKind::none:
    case CopyKind::no_folder:
      return not_there(name);
  }
  const bool is_folder = found->kind == CopyKind::folder;
  if (!is_folder && (copy.from.wants_folder || copy.from.contents)) {
    return Error{ErrorCode::invalid_argument, cat(printable(name), " is not a folder")};
  }
  if (copy.to.is_stream()) {
    if (!is_folder) return get_stream(copy);
    return Error{ErrorCode::invalid_argument,
                 cat(printable(name), " is a folder, of which there is no stream"),
                 {{"hint", cat("as an archive: fuse exec ", copy.from.id, " -- tar -c -f - -C ",
                               shell_quote(copy.from.path), " .")}}};
  }
  const std::string base = copy.from.contents ? "" : last_name(copy.from.path);
  const auto target = copy_target(copy.to, local_kind(here(copy, copy.to.path)), is_folder, base);
  if (!target) return target.error();
  return is_folder ? get_tree(copy, *target) : get_file(copy, *target, found->mode);
}

// To a guest.

Result<void> put_file(Copy& copy, const std::string& target, int fd, std::uint32_t mode) {
  std::uint64_t size = 0;
  auto wrote = copy.guest.write(target, mode, [&](const ByteSink& send) {
    return read_all(fd, copy.from.path, [&](std::string_view bytes) {
      size += bytes.size();
      return send(bytes);
    });
  });
  if (wrote) say_done(copy, 1, size, 0);
  return wrote;
}

Result<void> put_tree(Copy& copy, const std::string& target, bool is_new) {
  Packed packed;
  auto wrote = copy.guest.write_tree(target, [&](const ByteSink& send) -> Result<void> {
    auto done = pack_tree(here(copy, copy.from.path), is_new, send);
    if (!done) return done.error();
    packed = *done;
    return {};
  });
  if (wrote) say_done(copy, packed.files, packed.bytes, packed.skipped);
  return wrote;
}

// The kind of what is sent; a stream is a file.
Result<CopyKind> kind_to_send(const Copy& copy) {
  if (copy.from.is_stream()) return CopyKind::file;
  const CopyKind kind = local_kind(here(copy, copy.from.path));
  if (kind == CopyKind::none || kind == CopyKind::no_folder || kind == CopyKind::dangling) {
    return not_there(copy.from.path);
  }
  if (kind != CopyKind::folder && (copy.from.wants_folder || copy.from.contents)) {
    return Error{ErrorCode::invalid_argument, cat(printable(copy.from.path), " is not a folder")};
  }
  return kind;
}

// What it is called where it goes; for ".." that is not how it is written.
std::string name_of(const fs::path& source) {
  std::string name = last_name(source.native());
  if (name != "..") return name;
  std::error_code failure;
  return fs::weakly_canonical(source, failure).filename();
}

Result<void> put_stream(Copy& copy, const GuestFile& there) {
  if (there.kind == CopyKind::folder) {
    return Error{ErrorCode::invalid_argument,
                 cat(printable(far_name(copy.to)), " is a folder: the stream needs a name in it")};
  }
  const auto target = copy_target(copy.to, there.kind, false, "");
  if (!target) return target.error();
  const bool is_there = there.kind == CopyKind::file;
  return put_file(copy, *target, copy.context.terminal.input_fd(), is_there ? there.mode : 0644);
}

Result<void> put(Copy& copy) {
  const auto kind = kind_to_send(copy);
  if (!kind) return kind.error();
  const auto there = copy.guest.look_at(copy.to.path);
  if (!there) return there.error();
  if (copy.from.is_stream()) return put_stream(copy, *there);
  const bool is_folder = *kind == CopyKind::folder;
  const fs::path source = here(copy, copy.from.path);
  const auto target =
      copy_target(copy.to, there->kind, is_folder, copy.from.contents ? "" : name_of(source));
  if (!target) return target.error();
  if (is_folder) {
    const bool is_new = there->kind == CopyKind::none || *target != copy.to.path;
    return put_tree(copy, *target, is_new);
  }
  const Fd file(::open(source.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat found {};
  if (!file.valid() || ::fstat(file.get(), &found) < 0) {
    return errno_error(cat("open ", printable(copy.from.path)), errno);
  }
  return put_file(copy, *target, file.get(), found.st_mode & 0777U);
}

struct CopyOptions {
  std::string from{};
  std::string to{};
};

int run_cp(Context& context, const CopyOptions& options) {
  const auto from = parse_copy_place(options.from);
  if (!from) return misuse(context, from.error());
  const auto to = parse_copy_place(options.to);
  if (!to) return misuse(context, to.error());
  if (from->id.empty() == to->id.empty()) {
    return misuse(
        context,
        {ErrorCode::invalid_argument,
         from->id.empty() ? "neither side is in an environment" : "both sides are in environments",
         {{"hint", from->id.empty()
                       ? std::string("one of them is ID:/PATH, as in fuse-train:/workspace/out")
                       : cat("by way of this machine: fuse cp ", printable(options.from),
                             " - | fuse cp - ", printable(options.to))}}});
  }
  const bool outwards = !from->id.empty();
  Interruption interruption(context);
  const auto api = context.connect(context);
  if (!api) return context.fail(api.error());
  Copy copy{context, *from, *to,
            GuestFiles(**api, outwards ? from->id : to->id, interruption.token()), interruption};
  const auto done = outwards ? get(copy) : put(copy);
  if (interruption.happened()) {
    if (!context.out.good()) return interruption.exit_code();
    context.note("interrupted: what was to be copied is not whole");
    return interruption.exit_code();
  }
  return done ? static_cast<int>(success) : context.fail(done.error());
}

}  // namespace

void add_cp(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<CopyOptions>();
  auto* cp = app.add_subcommand("cp", "Copy files and folders to or from an environment");
  cp->add_option("FROM", options->from, "ID:/PATH, a path here, or - for stdin")
      ->required()
      ->type_name("");
  cp->add_option("TO", options->to, "The same; - is stdout")->required()->type_name("");
  cp->callback([&invocation, options] {
    invocation.action = [&invocation, options] { return run_cp(invocation.context, *options); };
  });
}

}  // namespace fuse::cmd
