package frr

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// account is the user that distributions make for FRR; its daemons refuse root.
const account = "frr"

// places are where distributions put the daemons.
var places = []string{"/usr/lib/frr", "/usr/libexec/frr", "/usr/local/lib/frr", "/usr/local/sbin"}

// An Install is FRR as it is on this machine.
type Install struct {
	dir      string
	uid, gid int
}

// Find looks for FRR; the error says how to get it.
func Find() (*Install, error) {
	dir := ""
	for _, d := range places {
		if runnable(filepath.Join(d, "zebra")) {
			dir = d
			break
		}
	}
	u, err := user.Lookup(account)
	switch {
	case dir == "":
		return nil, fmt.Errorf("FRR is missing: there is no zebra in %s; install it: apt-get install --no-install-recommends frr", strings.Join(places, ", "))
	case err != nil:
		return nil, fmt.Errorf("FRR in %s has no user %s to run as: %w; install it whole: apt-get install --reinstall frr", dir, account, err)
	}
	i := &Install{dir: dir}
	i.uid, err = strconv.Atoi(u.Uid)
	if err == nil {
		i.gid, err = strconv.Atoi(u.Gid)
	}
	return i, err
}

func runnable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// Has reports whether the installation has a daemon.
func (i *Install) Has(daemon string) bool { return runnable(i.path(daemon)) }

func (i *Install) path(daemon string) string { return filepath.Join(i.dir, daemon) }

// reachable is an error that names the directory above path that FRR's user may not enter.
func (i *Install) reachable(path string) error {
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		var st syscall.Stat_t
		if err := syscall.Stat(dir, &st); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		if !i.mayEnter(&st) {
			return fmt.Errorf("user %s, as which FRR runs, may not enter %s: chmod o+x %s, or keep the lab elsewhere", account, dir, dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

func (i *Install) mayEnter(st *syscall.Stat_t) bool {
	switch {
	case int(st.Uid) == i.uid:
		return st.Mode&0o100 != 0
	case int(st.Gid) == i.gid:
		return st.Mode&0o010 != 0
	}
	return st.Mode&0o001 != 0
}
