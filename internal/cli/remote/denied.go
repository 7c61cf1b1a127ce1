package remote

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"scaffold.dev/scaffold/internal/cli/exit"
)

// denied says whose a socket is that this user may not connect to, and how he may.
func denied(endpoint string) error {
	hint := "its socket is for root: try again with sudo"
	if group := groupOf(strings.TrimPrefix(endpoint, "unix:")); group != "" {
		hint = fmt.Sprintf("its socket is for root and the group %s: try again with sudo, or add this user to the group (usermod -aG %[1]s USER), who then logs in again", group)
		if group == adminGroup {
			hint += "; whoever is in it rules the network"
		}
	}
	return exit.Failf(exit.Missing, hint, "%s: permission denied", endpoint)
}

// adminGroup is that of an installed controller's socket.
const adminGroup = "scaffold-admin"

// groupOf is the group to which a socket belongs, or, where this user may not look at it, the directory that hides it;
// "" where that is root's.
func groupOf(path string) string {
	if to, err := os.Readlink(path); err == nil { // the controller's is in a directory of its own
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(path), to)
		}
		path = to
	}
	for ; ; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil && path != filepath.Dir(path) {
			continue
		}
		if err != nil {
			return ""
		}
		s, ok := info.Sys().(*syscall.Stat_t)
		if !ok || s.Gid == 0 {
			return ""
		}
		g, err := user.LookupGroupId(strconv.FormatUint(uint64(s.Gid), 10))
		if err != nil {
			return ""
		}
		return g.Name
	}
}
