package sockets

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// sweep forgets namespaces that are gone: of hosts whose daemon was killed and never came back, and of their guests.
func (h *Hooks) sweep() {
	var key uint64
	var row hooksHostRow
	dead := map[uint64]uint32{} // cookie -> inode
	live := inhabited()
	for it := h.maps.Hosts.Iterate(); it.Next(&key, &row); {
		if !live[row.Inode] {
			dead[key] = row.Inode
		}
	}
	if len(dead) == 0 {
		return
	}
	held := held() // of all processes' files, which is dear: not looked at where nothing is to be forgotten
	for key, inode := range dead {
		if !held[inode] {
			h.forget(key) //nolint:errcheck // the next daemon tries again
		}
	}
}

// forget removes a host and its sockets.
func (h *Hooks) forget(netns uint64) error {
	err := h.maps.Hosts.Delete(netns)
	h.maps.Rings.Delete(netns)     //nolint:errcheck // a host that was not whole yet has none
	h.maps.Wildcards.Delete(netns) //nolint:errcheck // as above
	var cookie uint64
	var row hooksSockRow
	var mine []uint64
	for it := h.maps.Socks.Iterate(); it.Next(&cookie, &row); {
		if row.Netns == netns {
			mine = append(mine, cookie)
		}
	}
	for _, cookie := range mine {
		h.maps.Socks.Delete(cookie) //nolint:errcheck // closed meanwhile: it is gone
	}
	return err
}

// inhabited are the inodes of the network namespaces that processes are in, or that `ip netns` has a name for.
func inhabited() map[uint32]bool {
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

// held are the inodes of those that an open file or a mount keeps, of whatever process: a guest that has no process
// yet, and is known by a file elsewhere than in /run/netns, is kept by the daemon whose guest it is.
func held() map[uint32]bool {
	held := map[uint32]bool{}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil {
			note(held, to)
		}
	}
	seen := map[string]bool{}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		mounts, err := os.Readlink(process + "/ns/mnt")
		if err != nil || seen[mounts] {
			continue
		}
		seen[mounts] = true
		text, _ := os.ReadFile(process + "/mountinfo")
		for line := range strings.Lines(string(text)) {
			if fields := strings.Fields(line); len(fields) > 3 {
				note(held, fields[3]) // what of its file system is mounted
			}
		}
	}
	return held
}

// note reads the kernel's name of a network namespace, net:[4026531840].
func note(held map[uint32]bool, name string) {
	var inode uint32
	if n, _ := fmt.Sscanf(name, "net:[%d]", &inode); n == 1 {
		held[inode] = true
	}
}

func inodeOf(name string) (uint32, bool) {
	info, err := os.Stat(name)
	if err != nil {
		return 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return uint32(st.Ino), ok
}
