package checks

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"scaffold.dev/scaffold/internal/bpf/sockets"
	"scaffold.dev/scaffold/internal/linux/descriptors"
	"scaffold.dev/scaffold/sid"
)

// nobody is the user of checks whose serving program is root, or is not found.
var nobody = syscall.Credential{Uid: 65534, Gid: 65534}

// A Servant finds out as whom the check of an instance runs: as the program that holds its sockets.
type Servant struct {
	Proto   sid.Proto
	At      netip.AddrPort // of the service
	In      Namespace
	Cookies func() map[uint64]bool // of the sockets that serve now

	link, socket string // where it was found: a descriptor below /proc, and what it leads to
}

// user is the program's, never root: the network chose that the check runs, and must not choose that root does it.
func (s *Servant) user() syscall.Credential {
	if c, ok := s.holder(s.link); ok && c.Uid != 0 {
		return c
	}
	best := nobody
	s.link = ""
	inodes := s.inodes()
	descriptors.Each(func(link, target string) bool {
		if !inodes[target] {
			return true
		}
		// The socket may have been opened by root for others: a service manager, a master of workers.
		if c, ok := s.holder(link); ok && c.Uid != 0 {
			best, s.link, s.socket = c, link, target
			return false
		}
		return true
	})
	return best
}

// holder reads whose process has the descriptor. The descriptor is looked at before and after: a process of the same
// number that came between would not have it.
func (s *Servant) holder(link string) (c syscall.Credential, ok bool) {
	if link == "" {
		return c, false
	}
	before, err := os.Readlink(link)
	if err != nil || s.link == link && before != s.socket {
		return c, false
	}
	status, err := os.ReadFile(filepath.Join(descriptors.Process(link), "status"))
	if err != nil {
		return c, false
	}
	if c, err = parseStatus(status); err != nil {
		return c, false
	}
	after, err := os.Readlink(link)
	return c, err == nil && after == before
}

// parseStatus reads the effective user, group and the further groups of /proc/PID/status, proc_pid_status(5).
func parseStatus(status []byte) (c syscall.Credential, err error) {
	seen := 0
	for line := range bytes.Lines(status) {
		key, rest, _ := strings.Cut(string(line), ":")
		if key != "Uid" && key != "Gid" && key != "Groups" {
			continue
		}
		var ids []uint32
		for _, f := range strings.Fields(rest) {
			id, err := strconv.ParseUint(f, 10, 32)
			if err != nil {
				return c, fmt.Errorf("%s: %w", key, err)
			}
			ids = append(ids, uint32(id))
		}
		switch {
		case key == "Groups":
			c.Groups = ids
		case len(ids) < 2:
			return c, fmt.Errorf("%s: %q", key, rest)
		case key == "Uid":
			c.Uid = ids[1]
		default:
			c.Gid = ids[1]
		}
		seen++
	}
	if seen != 3 {
		return c, fmt.Errorf("a status without Uid, Gid or Groups")
	}
	return c, nil
}

// inodes are those of the sockets that serve, as descriptors lead to them.
func (s *Servant) inodes() map[string]bool {
	wanted, found := s.Cookies(), map[string]bool{}
	s.In.Do(func() error { //nolint:errcheck // who is not found is nobody
		diag, err := sockets.OpenDiag()
		if err != nil {
			return err
		}
		defer diag.Close()
		err = diag.Each(s.Proto, sockets.StateAny, s.At.Port(), func(sock sockets.DiagSocket) {
			if wanted[sock.Cookie] && sock.Inode != 0 {
				found[fmt.Sprintf("socket:[%d]", sock.Inode)] = true
			}
		})
		if s.Proto != sid.TCP || err != nil {
			return err
		}
		// Programs of Go listen with Multipath TCP unless told otherwise.
		return diag.EachMultipath(s.At.Port(), func(sock sockets.DiagSocket) {
			if a := sock.Local.Addr(); a == s.At.Addr() || a.IsUnspecified() {
				found[fmt.Sprintf("socket:[%d]", sock.Inode)] = true
			}
		})
	})
	return found
}
