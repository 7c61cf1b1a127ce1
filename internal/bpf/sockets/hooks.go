package sockets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"

	"scaffold.dev/scaffold/internal/bpf/bpffs"
	"scaffold.dev/scaffold/internal/linux/cgroups"
)

// Hooks is the one set of cgroup programs of this machine, pinned so that it outlives each daemon.
type Hooks struct {
	bpffs string
	maps  hooksMaps
}

// pinDir is where the machine's set is pinned.
func pinDir(bpffs string) string { return filepath.Join(bpffs, "machine") }

// linkPins are the pins of the attached programs; the set is whole when the last of them is there.
var linkPins = []string{"link_bind6", "link_post_bind6", "link_connect6", "link_release", "link_sockops"}

// Open adopts the machine's hooks or installs them on the root cgroup, and forgets the hosts whose
// network namespace is gone. The directory must lie on a BPF file system (bpffs.Mount).
func Open(dir string) (*Hooks, error) {
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("lift the memory limit for BPF maps: %w", err)
	}
	unlock, err := bpffs.Lock(dir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	h := &Hooks{bpffs: dir}
	if err := h.adopt(); err == nil {
		h.sweep()
		if err := h.renew(); err != nil {
			h.maps.Close()
			return nil, err
		}
		return h, nil
	} else if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	// What is there is half a set, left by a crash while it was being made.
	if err := os.RemoveAll(pinDir(dir)); err != nil {
		return nil, fmt.Errorf("remove half-made pins: %w", err)
	}
	if err := h.install(); err != nil {
		os.RemoveAll(pinDir(dir))
		return nil, err
	}
	return h, nil
}

// adopt opens the pinned maps; os.ErrNotExist means that the set is not whole.
func (h *Hooks) adopt() error {
	dir := pinDir(h.bpffs)
	for _, name := range linkPins {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	spec, err := loadHooks()
	if err != nil {
		return fmt.Errorf("parse the socket hooks: %w", err)
	}
	maps := map[string]**ebpf.Map{"hosts": &h.maps.Hosts, "rings": &h.maps.Rings, "socks": &h.maps.Socks, "wildcards": &h.maps.Wildcards}
	for name, m := range maps {
		*m, err = ebpf.LoadPinnedMap(filepath.Join(dir, name), nil)
		if errors.Is(err, os.ErrNotExist) && name == "wildcards" { // the set is of a version without it
			*m, err = makePinned(spec.Maps[name], filepath.Join(dir, name))
		}
		if err != nil {
			return err
		}
		if err := spec.Maps[name].Compatible(*m); err != nil {
			return fmt.Errorf("the machine's socket hooks at %s are of another version (%w): stop its host daemons, remove %s, start them again", dir, err, dir)
		}
	}
	return nil
}

func makePinned(spec *ebpf.MapSpec, file string) (*ebpf.Map, error) {
	m, err := ebpf.NewMap(spec)
	if err != nil {
		return nil, fmt.Errorf("make map %s: %w", spec.Name, err)
	}
	if err := m.Pin(file); err != nil {
		m.Close()
		return nil, fmt.Errorf("pin map %s: %w", spec.Name, err)
	}
	return m, nil
}

// renew lets the machine's links run our programs, without a gap: those of an older version may not tell all
// that is told now.
func (h *Hooks) renew() error {
	spec, err := loadHooks()
	if err != nil {
		return fmt.Errorf("parse the socket hooks: %w", err)
	}
	var p hooksPrograms
	defer p.Close()
	maps := map[string]*ebpf.Map{"hosts": h.maps.Hosts, "rings": h.maps.Rings, "socks": h.maps.Socks, "wildcards": h.maps.Wildcards}
	if err := spec.LoadAndAssign(&p, &ebpf.CollectionOptions{MapReplacements: maps}); err != nil {
		return fmt.Errorf("load the socket hooks: %w", err)
	}
	for i, prog := range []*ebpf.Program{p.OnBind6, p.OnPostBind6, p.OnConnect6, p.OnRelease, p.OnSockops} {
		l, err := link.LoadPinnedLink(filepath.Join(pinDir(h.bpffs), linkPins[i]), nil)
		if err != nil {
			return fmt.Errorf("open %s: %w", linkPins[i], err)
		}
		err = l.Update(prog)
		l.Close()
		if err != nil {
			return fmt.Errorf("renew %s: %w", linkPins[i], err)
		}
	}
	return nil
}

// install loads, attaches and pins the set.
func (h *Hooks) install() error {
	dir := pinDir(h.bpffs)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return fmt.Errorf("pin the socket hooks: %w", err)
	}
	var objs hooksObjects
	if err := loadHooksObjects(&objs, nil); err != nil {
		return fmt.Errorf("load the socket hooks: %w (Linux 5.15 or later with CONFIG_CGROUP_BPF is needed)", err)
	}
	defer objs.hooksPrograms.Close()
	h.maps = objs.hooksMaps
	for name, m := range map[string]*ebpf.Map{"hosts": objs.Hosts, "rings": objs.Rings, "socks": objs.Socks, "wildcards": objs.Wildcards} {
		if err := m.Pin(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("pin map %s: %w", name, err)
		}
	}
	return attach(&objs.hooksPrograms, dir)
}

// attach hangs the programs on the root cgroup and pins the links.
func attach(p *hooksPrograms, dir string) error {
	root, err := cgroups.Root()
	if err != nil {
		return err
	}
	defer root.Close()
	for i, a := range []link.CgroupOptions{
		{Attach: ebpf.AttachCGroupInet6Bind, Program: p.OnBind6},
		{Attach: ebpf.AttachCGroupInet6PostBind, Program: p.OnPostBind6},
		{Attach: ebpf.AttachCGroupInet6Connect, Program: p.OnConnect6},
		{Attach: ebpf.AttachCgroupInetSockRelease, Program: p.OnRelease},
		{Attach: ebpf.AttachCGroupSockOps, Program: p.OnSockops},
	} {
		a.Path = cgroups.Path(root)
		l, err := link.AttachCgroup(a)
		if err != nil {
			return fmt.Errorf("attach %v to the root cgroup: %w", a.Attach, err)
		}
		err = l.Pin(filepath.Join(dir, linkPins[i]))
		l.Close()
		if err != nil {
			return fmt.Errorf("pin %s: %w", linkPins[i], err)
		}
	}
	return nil
}

// Close gives up this process's hold. The hooks are unpinned, and so end, when no host is left.
func (h *Hooks) Close() error {
	unlock, err := bpffs.Lock(h.bpffs)
	if err != nil {
		return err
	}
	defer unlock()
	var key uint64
	var row hooksHostRow
	if it := h.maps.Hosts.Iterate(); !it.Next(&key, &row) && it.Err() == nil {
		err = os.RemoveAll(pinDir(h.bpffs))
	}
	return errors.Join(err, h.maps.Close())
}
