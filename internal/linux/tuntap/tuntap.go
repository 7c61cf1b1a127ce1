// Package tuntap opens interfaces whose far end is a process: TAP devices, which carry Ethernet frames, and TUN
// devices, which carry IP packets.
package tuntap

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Path is where the kernel gives them.
const Path = "/dev/net/tun"

// Kinds of devices, without the kernel's own header before each frame.
const (
	TAP = unix.IFF_TAP | unix.IFF_NO_PI
	TUN = unix.IFF_TUN | unix.IFF_NO_PI
)

// Header beside a kind has struct virtio_net_hdr stand before each frame: what offloads need.
const Header = unix.IFF_VNET_HDR

// Open makes the interface in the namespace of the calling thread, set down. It ends with the descriptor, which does
// not block. Of several sets of offloads (unix.TUN_F_...) the first that the kernel has is used.
func Open(name string, kind uint16, offloads ...int) (fd int, err error) {
	req, err := unix.NewIfreq(name)
	if err != nil {
		return -1, fmt.Errorf("interface %q: %w", name, err)
	}
	fd, err = unix.Open(Path, unix.O_RDWR|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("open %s: %w (is the module tun loaded?)", Path, err)
	}
	req.SetUint16(kind)
	if err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req); err != nil {
		err = fmt.Errorf("make interface %s: %w", name, err)
	} else if err = offload(fd, offloads); err != nil {
		err = fmt.Errorf("segmentation offload of %s: %w", name, err)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func offload(fd int, sets []int) error {
	var errs []error
	for _, set := range sets {
		err := unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, set)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
