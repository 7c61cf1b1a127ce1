package sockets

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
)

// RewriteBind makes programs in the cgroup that bind the IPv6 wildcard address and a port bind the
// address to instead, until the result is closed. IPv4 binds and port 0 are left alone.
func RewriteBind(cgroupDir string, to netip.Addr) (io.Closer, error) {
	if !to.Is6() || to.Is4In6() {
		return nil, fmt.Errorf("rewrite binds to %v: want an IPv6 address", to)
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("lift the memory limit for BPF maps: %w", err)
	}
	spec, err := loadRewrite()
	if err != nil {
		return nil, fmt.Errorf("parse the bind hook: %w", err)
	}
	b := to.As16()
	var words [4]uint32 // in memory as on the wire
	for i := range words {
		words[i] = binary.NativeEndian.Uint32(b[4*i:])
	}
	if err := spec.Variables["to"].Set(words); err != nil {
		return nil, fmt.Errorf("set the bind hook's address: %w", err)
	}
	var objs rewriteObjects
	if err := spec.LoadAndAssign(&objs, nil); err != nil {
		return nil, fmt.Errorf("load the bind hook: %w", err)
	}
	defer objs.Close()
	l, err := link.AttachCgroup(link.CgroupOptions{Path: cgroupDir, Attach: ebpf.AttachCGroupInet6Bind, Program: objs.RewriteBind6})
	if err != nil {
		return nil, fmt.Errorf("attach the bind hook to %s: %w", cgroupDir, err)
	}
	return l, nil
}
