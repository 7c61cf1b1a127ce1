package features

import (
	"errors"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

const ringBytes = 1 << 16 // a power of two and of whole pages, also where pages are large

func create(spec *ebpf.MapSpec) error {
	m, err := ebpf.NewMap(spec)
	if err != nil {
		return err
	}
	return m.Close()
}

func ring() *ebpf.MapSpec {
	return &ebpf.MapSpec{Name: "probe", Type: ebpf.RingBuf, MaxEntries: ringBytes}
}

func ringbuf() error { return create(ring()) }

func nestedRing() error {
	return create(&ebpf.MapSpec{Name: "probe", Type: ebpf.HashOfMaps, KeySize: 8, ValueSize: 4, MaxEntries: 4,
		Flags: unix.BPF_F_NO_PREALLOC, InnerMap: ring()})
}

// bpffs opens one without mounting it anywhere. Kernels before 5.2 cannot be asked that way.
func bpffs() error {
	fd, err := unix.Fsopen("bpf", unix.FSOPEN_CLOEXEC)
	if errors.Is(err, unix.ENOSYS) {
		return nil
	}
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
