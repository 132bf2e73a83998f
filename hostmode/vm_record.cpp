#include "hostmode/vm_record.h"

#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json_reader.h"
#include "base/text.h"

namespace fuse {

namespace {

using nlohmann::json;
using nlohmann::ordered_json;

template <class E, std::size_t N>
using Names = std::array<std::pair<E, std::string_view>, N>;

constexpr Names<VmState, 3> states = {
    {{VmState::creating, "creating"}, {VmState::running, "running"}, {VmState::ended, "ended"}}};
constexpr Names<Accel, 2> accels = {{{Accel::kvm, "kvm"}, {Accel::tcg, "tcg"}}};
constexpr Names<ReleaseGrade, 3> grades = {{{ReleaseGrade::reset, "reset"},
                                            {ReleaseGrade::not_reset, "not-reset"},
                                            {ReleaseGrade::quarantined, "quarantined"}}};
constexpr Names<NetMode, 2> nets = {{{NetMode::none, "none"}, {NetMode::user, "user"}}};

template <class E, std::size_t N>
std::string_view name_in(const Names<E, N>& names, E value) {
  for (const auto& [known, name] : names) {
    if (known == value) return name;
  }
  return "";
}

// Reads fields that must all be there: a record with a hole is a damaged one.
class RecordReader {
 public:
  RecordReader(const json& value, std::string path) : reader_(value, std::move(path)) {}

  std::string text(std::string_view key) { return required(key, reader_.text(key)); }
  std::int64_t integer(std::string_view key) { return required(key, reader_.integer(key)); }
  std::int64_t count(std::string_view key,
                     std::int64_t most = std::numeric_limits<std::int64_t>::max()) {
    const std::int64_t value = integer(key);
    if (value >= 0 && value <= most) return value;
    reader_.complain(key, "is out of range");
    return 0;
  }
  std::int32_t small(std::string_view key) {
    return static_cast<std::int32_t>(count(key, std::numeric_limits<std::int32_t>::max()));
  }
  bool flag(std::string_view key) { return required(key, reader_.flag(key)); }
  std::vector<std::string> texts(std::string_view key) { return required(key, reader_.texts(key)); }
  template <class E, std::size_t N>
  E one_of(std::string_view key, const Names<E, N>& names) {
    const std::string given = text(key);
    for (const auto& [value, name] : names) {
      if (name == given) return value;
    }
    reader_.complain(key, cat("has the unknown value \"", given, "\""));
    return names.front().first;
  }
  JsonReader& reader() { return reader_; }

 private:
  template <class T>
  T required(std::string_view key, std::optional<T> value) {
    if (!value) reader_.complain(key, "is missing");
    return std::move(value).value_or(T{});
  }

  JsonReader reader_;
};

ordered_json devices_json(const std::vector<VmDevice>& devices) {
  ordered_json out = ordered_json::array();
  for (const VmDevice& device : devices) {
    out.push_back({{"kind", device.kind},
                   {"address", device.address},
                   {"uuid", device.uuid},
                   {"group", device.group}});
  }
  return out;
}

ordered_json release_json(const DeviceRelease& release) {
  ordered_json devices = ordered_json::array();
  for (const ReleasedDevice& device : release.devices) {
    devices.push_back(
        {{"address", device.address}, {"reset", device.reset}, {"problem", device.problem}});
  }
  return {{"at", release.at}, {"grade", to_string(release.grade)}, {"devices", std::move(devices)}};
}

// Adds the problems of a nested object to those of the record.
template <class T, class F>
T nested(RecordReader& record, std::string_view key, F&& read) {
  const json* value = record.reader().object(key);
  if (value == nullptr) {
    record.reader().complain(key, "is missing");
    return T{};
  }
  RecordReader fields(*value, record.reader().path_of(key));
  T out = read(fields);
  if (auto done = fields.reader().finish(); !done) {
    record.reader().complain(key, cat("is damaged (", done.error().message, ")"));
  }
  return out;
}

BootImage read_image(RecordReader& fields) {
  return {.name = fields.text("name"),
          .kernel = fields.text("kernel"),
          .initrd = fields.text("initrd"),
          .disk = fields.text("disk"),
          .has_root = fields.flag("has_root"),
          .init = fields.text("init")};
}

VmProcess read_process(RecordReader& fields) {
  return {.pid = fields.small("pid"),
          .start_time = static_cast<std::uint64_t>(fields.count("start_time")),
          .boot_id = fields.text("boot_id")};
}

// The objects of the list `devices`.
template <class T, class F>
std::vector<T> device_list(RecordReader& record, F&& read) {
  std::vector<T> devices;
  if (!record.reader().has("devices")) record.reader().complain("devices", "is missing");
  for (const json* element : record.reader().elements("devices")) {
    RecordReader fields(*element, "devices");
    devices.push_back(read(fields));
    if (auto done = fields.reader().finish(); !done) {
      record.reader().complain("devices", cat("is damaged (", done.error().message, ")"));
    }
  }
  return devices;
}

VmDevice read_device(RecordReader& fields) {
  return {.kind = fields.text("kind"),
          .address = fields.text("address"),
          .uuid = fields.text("uuid"),
          .group = fields.text("group")};
}

ReleasedDevice read_released(RecordReader& fields) {
  return {.address = fields.text("address"),
          .reset = fields.text("reset"),
          .problem = fields.text("problem")};
}

DeviceRelease read_release(RecordReader& fields) {
  return {.at = fields.text("at"),
          .grade = fields.one_of("grade", grades),
          .devices = device_list<ReleasedDevice>(fields, read_released)};
}

Error damaged(std::string_view what) {
  return {ErrorCode::internal, cat("the record is damaged: ", what)};
}

}  // namespace

std::string_view to_string(VmState state) {
  return name_in(states, state);
}
std::string_view to_string(Accel accel) {
  return name_in(accels, accel);
}
std::string_view to_string(ReleaseGrade grade) {
  return name_in(grades, grade);
}
std::string_view to_string(NetMode mode) {
  return name_in(nets, mode);
}

std::string to_text(const VmRecord& record) {
  ordered_json out = {
      {"schema", VmRecord::schema},
      {"uid", record.uid},
      {"vm_id", record.vm_id},
      {"name", record.name},
      {"cluster", record.cluster},
      {"idempotency_key", record.idempotency_key},
      {"region", record.region},
      {"image",
       {{"name", record.image.name},
        {"kernel", record.image.kernel},
        {"initrd", record.image.initrd},
        {"disk", record.image.disk},
        {"has_root", record.image.has_root},
        {"init", record.image.init}}},
      {"cpus", record.cpus},
      {"memory_mb", record.memory_mb},
      {"storage_gb", record.storage_gb},
      {"accel", to_string(record.accel)},
      {"net", to_string(record.net)},
      {"devices", devices_json(record.devices)},
      {"argv", record.argv},
      {"process",
       {{"pid", record.process.pid},
        {"start_time", record.process.start_time},
        {"boot_id", record.process.boot_id}}},
      {"created_at", record.created_at},
      {"ended_at", record.ended_at},
      {"state", to_string(record.state)},
      {"destroying", record.destroying},
      {"reason", record.reason},
  };
  if (record.release) out["release"] = release_json(*record.release);
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<VmRecord> parse_vm_record(std::string_view text) {
  const auto parsed = parse_json(text);
  if (!parsed) return damaged("it is not JSON");
  if (!parsed->is_object()) return damaged("it is not an object");
  RecordReader fields(*parsed, "");
  const std::int64_t schema = fields.integer("schema");
  if (auto done = fields.reader().finish(); !done) return damaged(done.error().message);
  if (schema > VmRecord::schema) {
    return Error{ErrorCode::unimplemented,
                 cat("the record has schema ", schema, ", this program knows ", VmRecord::schema,
                     ": it was written by a newer version")};
  }
  if (schema < 1) return damaged(cat("schema ", schema, " never existed"));

  VmRecord record{.uid = fields.text("uid"),
                  .vm_id = fields.text("vm_id"),
                  .name = fields.text("name"),
                  .cluster = fields.text("cluster"),
                  .idempotency_key = fields.text("idempotency_key"),
                  .region = fields.text("region"),
                  .image = nested<BootImage>(fields, "image", read_image),
                  .cpus = fields.small("cpus"),
                  .memory_mb = fields.small("memory_mb"),
                  .storage_gb = fields.small("storage_gb"),
                  .accel = fields.one_of("accel", accels),
                  .net = fields.one_of("net", nets),
                  .devices = device_list<VmDevice>(fields, read_device),
                  .argv = fields.texts("argv"),
                  .process = nested<VmProcess>(fields, "process", read_process),
                  .created_at = fields.text("created_at"),
                  .ended_at = fields.text("ended_at"),
                  .state = fields.one_of("state", states),
                  .destroying = fields.flag("destroying"),
                  .reason = fields.text("reason")};
  if (fields.reader().has("release")) {
    record.release = nested<DeviceRelease>(fields, "release", read_release);
  }
  if (!is_uid(record.uid)) fields.reader().complain("uid", "is not a ULID");
  if (record.vm_id != vm_id_of(record.vm_id)) fields.reader().complain("vm_id", "is not a VM's id");
  if (auto done = fields.reader().finish(); !done) return damaged(done.error().message);
  return record;
}

Result<void> write_vm_record(Host& host, const StatePaths& paths, const VmRecord& record) {
  return host.replace_file(paths.vm(record.uid, vm_file::record), to_text(record), 0600);
}

Result<VmRecord> read_vm_record(Host& host, const StatePaths& paths, const std::string& uid) {
  const auto text = host.read_file(paths.vm(uid, vm_file::record));
  if (!text) return text.error();
  auto record = parse_vm_record(*text);
  if (record && record->uid != uid) return damaged(cat("it is that of ", record->uid));
  return record;
}

Result<std::string> read_boot_id(Host& host) {
  const auto text = host.read_file("/proc/sys/kernel/random/boot_id");
  if (!text) return text.error();
  return std::string(trim(*text));
}

}  // namespace fuse
