// SPDX-License-Identifier: GPL-2.0
/*
 * A vGPU host without a GPU: a PCI driver named "nvidia" that takes one emulated
 * display controller and offers mediated devices on it, so that sysfs looks as it does
 * with NVIDIA's vGPU host driver:
 *
 *   /sys/bus/pci/devices/ADDRESS/mdev_supported_types/nvidia-63/create
 *
 * A device has a configuration space and nothing else: enough for QEMU to pass it to a
 * guest, which then lists a 10de:1eb8.
 */
#include <linux/init.h>
#include <linux/mdev.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vfio.h>
#include <asm/unaligned.h>

#define CONFIG_BYTES 256

struct lab_vgpu {
	struct vfio_device vdev;
	u8 config[CONFIG_BYTES];
};

static void lab_write_identity(u8 *config)
{
	memset(config, 0, CONFIG_BYTES);
	put_unaligned_le16(0x10de, config + PCI_VENDOR_ID);
	put_unaligned_le16(0x1eb8, config + PCI_DEVICE_ID);
	put_unaligned_le16(PCI_CLASS_DISPLAY_3D, config + PCI_CLASS_DEVICE);
	put_unaligned_le16(0x10de, config + PCI_SUBSYSTEM_VENDOR_ID);
	put_unaligned_le16(0x1309, config + PCI_SUBSYSTEM_ID);
}

/* The part of a transfer that lies in the configuration space, or an error. */
static ssize_t lab_config_part(size_t count, loff_t at)
{
	u64 region = (u64)at >> 40;
	u64 offset = (u64)at & ((1ULL << 40) - 1);

	if (region != VFIO_PCI_CONFIG_REGION_INDEX || offset >= CONFIG_BYTES)
		return -EINVAL;
	return min_t(size_t, count, CONFIG_BYTES - offset);
}

static ssize_t lab_read(struct vfio_device *vdev, char __user *to, size_t count, loff_t *at)
{
	struct lab_vgpu *vgpu = container_of(vdev, struct lab_vgpu, vdev);
	ssize_t part = lab_config_part(count, *at);

	if (part < 0)
		return part;
	if (copy_to_user(to, vgpu->config + (*at & (CONFIG_BYTES - 1)), part))
		return -EFAULT;
	*at += part;
	return part;
}

/* Of all registers a guest may change its command alone. */
static ssize_t lab_write(struct vfio_device *vdev, const char __user *from, size_t count,
			 loff_t *at)
{
	struct lab_vgpu *vgpu = container_of(vdev, struct lab_vgpu, vdev);
	ssize_t part = lab_config_part(count, *at);
	u8 bytes[CONFIG_BYTES];
	ssize_t i;

	if (part < 0)
		return part;
	if (copy_from_user(bytes, from, part))
		return -EFAULT;
	for (i = 0; i < part; i++) {
		size_t offset = (*at & (CONFIG_BYTES - 1)) + i;

		if (offset == PCI_COMMAND || offset == PCI_COMMAND + 1)
			vgpu->config[offset] = bytes[i];
	}
	*at += part;
	return part;
}

static long lab_device_info(unsigned long arg)
{
	struct vfio_device_info info = {
		.argsz = sizeof(info),
		.flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET,
		.num_regions = VFIO_PCI_NUM_REGIONS,
		.num_irqs = VFIO_PCI_NUM_IRQS,
	};

	return copy_to_user((void __user *)arg, &info, offsetofend(struct vfio_device_info, num_irqs))
		       ? -EFAULT : 0;
}

static long lab_region_info(unsigned long arg)
{
	struct vfio_region_info info;
	size_t bytes = offsetofend(struct vfio_region_info, offset);

	if (copy_from_user(&info, (void __user *)arg, bytes))
		return -EFAULT;
	if (info.index >= VFIO_PCI_NUM_REGIONS)
		return -EINVAL;
	info.offset = (u64)info.index << 40;
	info.size = 0;
	info.flags = 0;
	if (info.index == VFIO_PCI_CONFIG_REGION_INDEX) {
		info.size = CONFIG_BYTES;
		info.flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE;
	}
	return copy_to_user((void __user *)arg, &info, bytes) ? -EFAULT : 0;
}

static long lab_irq_info(unsigned long arg)
{
	struct vfio_irq_info info;
	size_t bytes = offsetofend(struct vfio_irq_info, count);

	if (copy_from_user(&info, (void __user *)arg, bytes))
		return -EFAULT;
	info.flags = 0;
	info.count = 0;
	return copy_to_user((void __user *)arg, &info, bytes) ? -EFAULT : 0;
}

static long lab_ioctl(struct vfio_device *vdev, unsigned int cmd, unsigned long arg)
{
	struct lab_vgpu *vgpu = container_of(vdev, struct lab_vgpu, vdev);

	switch (cmd) {
	case VFIO_DEVICE_GET_INFO:
		return lab_device_info(arg);
	case VFIO_DEVICE_GET_REGION_INFO:
		return lab_region_info(arg);
	case VFIO_DEVICE_GET_IRQ_INFO:
		return lab_irq_info(arg);
	case VFIO_DEVICE_RESET:
		lab_write_identity(vgpu->config);
		return 0;
	}
	return -ENOTTY;
}

static int lab_open(struct vfio_device *vdev)
{
	return 0;
}

static void lab_close(struct vfio_device *vdev)
{
}

static int lab_init_device(struct vfio_device *vdev)
{
	lab_write_identity(container_of(vdev, struct lab_vgpu, vdev)->config);
	return 0;
}

static void lab_release_device(struct vfio_device *vdev)
{
	vfio_free_device(vdev);
}

static const struct vfio_device_ops lab_ops = {
	.name = "lab-vgpu",
	.init = lab_init_device,
	.release = lab_release_device,
	.open_device = lab_open,
	.close_device = lab_close,
	.read = lab_read,
	.write = lab_write,
	.ioctl = lab_ioctl,
};

static int lab_probe_vgpu(struct mdev_device *mdev)
{
	struct lab_vgpu *vgpu = vfio_alloc_device(lab_vgpu, vdev, &mdev->dev, &lab_ops);
	int failed;

	if (IS_ERR(vgpu))
		return PTR_ERR(vgpu);
	failed = vfio_register_emulated_iommu_dev(&vgpu->vdev);
	if (failed) {
		vfio_put_device(&vgpu->vdev);
		return failed;
	}
	dev_set_drvdata(&mdev->dev, vgpu);
	return 0;
}

static void lab_remove_vgpu(struct mdev_device *mdev)
{
	struct lab_vgpu *vgpu = dev_get_drvdata(&mdev->dev);

	vfio_unregister_group_dev(&vgpu->vdev);
	vfio_put_device(&vgpu->vdev);
}

static ssize_t lab_description(struct mdev_type *type, char *text)
{
	return sysfs_emit(text, "num_heads=4, frl_config=60, framebuffer=1024M, max_instance=4\n");
}

static struct mdev_driver lab_mdev_driver = {
	.device_api = VFIO_DEVICE_API_PCI_STRING,
	.max_instances = 4,
	.driver = {
		.name = "lab_vgpu",
		.owner = THIS_MODULE,
		.mod_name = KBUILD_MODNAME,
	},
	.probe = lab_probe_vgpu,
	.remove = lab_remove_vgpu,
	.show_description = lab_description,
};

static struct mdev_type lab_type = { .sysfs_name = "63", .pretty_name = "GRID T4-1Q" };
static struct mdev_type *lab_types[] = { &lab_type };
static struct mdev_parent lab_parent;
static bool lab_has_card;

static int lab_probe_card(struct pci_dev *card, const struct pci_device_id *id)
{
	int failed;

	if (lab_has_card)
		return -EBUSY;
	/* A kobject cannot be registered again with what its first life left in it. */
	memset(&lab_type.kobj, 0, sizeof(lab_type.kobj));
	failed = mdev_register_parent(&lab_parent, &card->dev, &lab_mdev_driver, lab_types,
				      ARRAY_SIZE(lab_types));
	lab_has_card = !failed;
	return failed;
}

static void lab_remove_card(struct pci_dev *card)
{
	mdev_unregister_parent(&lab_parent);
	lab_has_card = false;
}

/* QEMU's ati-vga. */
static const struct pci_device_id lab_ids[] = { { PCI_DEVICE(0x1002, 0x5046) }, { 0 } };

static struct pci_driver lab_pci_driver = {
	.name = "nvidia",
	.id_table = lab_ids,
	.probe = lab_probe_card,
	.remove = lab_remove_card,
};

static int __init lab_init(void)
{
	int failed = mdev_register_driver(&lab_mdev_driver);

	if (failed)
		return failed;
	failed = pci_register_driver(&lab_pci_driver);
	if (failed)
		mdev_unregister_driver(&lab_mdev_driver);
	return failed;
}

static void __exit lab_exit(void)
{
	pci_unregister_driver(&lab_pci_driver);
	mdev_unregister_driver(&lab_mdev_driver);
}

module_init(lab_init);
module_exit(lab_exit);
MODULE_DESCRIPTION("Mediated devices on an emulated display controller");
MODULE_LICENSE("GPL");
