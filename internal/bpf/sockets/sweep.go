package sockets

import (
	"os"
	"path/filepath"
	"syscall"
)

// sweep forgets hosts whose network namespace is gone: their daemon was killed and never came back.
func (h *Hooks) sweep() {
	live := liveNamespaces()
	var key uint64
	var row hooksHostRow
	var dead []uint64
	for it := h.maps.Hosts.Iterate(); it.Next(&key, &row); {
		if !live[row.Inode] {
			dead = append(dead, key)
		}
	}
	for _, key := range dead {
		h.forget(key)
	}
}

// forget removes a host and its sockets.
func (h *Hooks) forget(netns uint64) error {
	err := h.maps.Hosts.Delete(netns)
	h.maps.Rings.Delete(netns)
	h.maps.Wildcards.Delete(netns)
	var cookie uint64
	var row hooksSockRow
	var mine []uint64
	for it := h.maps.Socks.Iterate(); it.Next(&cookie, &row); {
		if row.Netns == netns {
			mine = append(mine, cookie)
		}
	}
	for _, cookie := range mine {
		h.maps.Socks.Delete(cookie)
	}
	return err
}

// liveNamespaces are the inodes of all network namespaces that a process or a name keeps alive. One
// kept by nothing but an open file is taken for dead: then its daemon is not running either.
func liveNamespaces() map[uint32]bool {
	live := map[uint32]bool{}
	for _, pattern := range []string{"/proc/[0-9]*/ns/net", "/run/netns/*"} {
		names, _ := filepath.Glob(pattern)
		for _, name := range names {
			if inode, ok := inodeOf(name); ok {
				live[inode] = true
			}
		}
	}
	// A thread may be elsewhere than its process; this one is in use right now.
	if inode, ok := inodeOf("/proc/thread-self/ns/net"); ok {
		live[inode] = true
	}
	return live
}

func inodeOf(name string) (uint32, bool) {
	info, err := os.Stat(name)
	if err != nil {
		return 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return uint32(st.Ino), ok
}
