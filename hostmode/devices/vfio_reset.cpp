#include "hostmode/devices/vfio_reset.h"

#include <fcntl.h>
#include <linux/vfio.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include "base/fd.h"
#include "base/text.h"

namespace fuse {

namespace {

Result<Fd> open_node(const std::string& file) {
  Fd fd(::open(file.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return errno_error(cat("open ", file), errno);
  return fd;
}

// A group with a container of its own: VFIO gives out its devices to nobody else.
struct OpenGroup {
  Fd container{};
  Fd group{};
};

Result<OpenGroup> open_group(const std::string& number) {
  auto container = open_node("/dev/vfio/vfio");
  if (!container) return container.error();
  auto group = open_node(cat("/dev/vfio/", number));
  if (!group) return group.error();
  vfio_group_status status{.argsz = sizeof(vfio_group_status), .flags = 0};
  if (::ioctl(group->get(), VFIO_GROUP_GET_STATUS, &status) < 0) {
    return errno_error(cat("look at VFIO group ", number), errno);
  }
  if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0) {
    return Error{ErrorCode::conflict, cat("VFIO group ", number, " is not viable")};
  }
  const int container_fd = container->get();
  if (::ioctl(group->get(), VFIO_GROUP_SET_CONTAINER, &container_fd) < 0) {
    return errno_error(cat("take VFIO group ", number), errno);
  }
  if (::ioctl(container_fd, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) < 0) {
    return errno_error("set the IOMMU's type", errno);
  }
  return OpenGroup{std::move(container).value(), std::move(group).value()};
}

// A structure of the kernel's with a list behind it.
template <class Head, class Element>
class Listed {
 public:
  explicit Listed(std::size_t count) : bytes_(sizeof(Head) + count * sizeof(Element)) {
    head()->argsz = static_cast<std::uint32_t>(bytes_.size());
  }
  Head* head() { return reinterpret_cast<Head*>(bytes_.data()); }
  Element at(std::size_t i) const {
    Element element{};
    std::memcpy(&element, bytes_.data() + sizeof(Head) + i * sizeof(Element), sizeof element);
    return element;
  }
  void set(std::size_t i, const Element& element) {
    std::memcpy(bytes_.data() + sizeof(Head) + i * sizeof(Element), &element, sizeof element);
  }

 private:
  std::vector<std::byte> bytes_;
};

// That everything a reset takes along is in the group.
Result<void> check_company(const Fd& device, const std::string& number) {
  constexpr std::size_t most = 256;  // functions of a bus
  Listed<vfio_pci_hot_reset_info, vfio_pci_dependent_device> info(most);
  if (::ioctl(device.get(), VFIO_DEVICE_GET_PCI_HOT_RESET_INFO, info.head()) < 0) {
    return errno_error("ask what a hot reset takes along", errno);
  }
  for (std::size_t i = 0; i < info.head()->count; ++i) {
    const std::string other = cat(info.at(i).group_id);
    if (other == number) continue;
    return Error{ErrorCode::conflict, cat("a hot reset would take along group ", other)};
  }
  return {};
}

}  // namespace

Result<void> vfio_hot_reset(const std::string& group, const std::string& address) {
  const auto opened = open_group(group);
  if (!opened) return opened.error();
  const Fd device(::ioctl(opened->group.get(), VFIO_GROUP_GET_DEVICE_FD, address.c_str()));
  if (!device.valid()) return errno_error(cat("open ", address, " in VFIO group ", group), errno);
  if (auto alone = check_company(device, group); !alone) return alone;
  Listed<vfio_pci_hot_reset, std::int32_t> request(1);
  request.head()->count = 1;
  request.set(0, opened->group.get());
  if (::ioctl(device.get(), VFIO_DEVICE_PCI_HOT_RESET, request.head()) < 0) {
    return errno_error(cat("hot reset of ", address), errno);
  }
  return {};
}

}  // namespace fuse
