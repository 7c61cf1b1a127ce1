package host

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/cilium/ebpf/link"
)

// SweepDead removes what hosts whose network namespaces are gone have left in their directories, which
// are those that match the pattern. Where clsact filters are used nothing tells the dead from the
// living, and all stay.
func SweepDead(pattern string) error {
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		if dead(dir) && !inhabited(dir) {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
}

// dead reports whether links are pinned in dir and none has an interface any more.
func dead(dir string) bool {
	pins, _ := filepath.Glob(filepath.Join(dir, "link-*"))
	for _, pin := range pins {
		if attached(pin) {
			return false
		}
	}
	return len(pins) > 0
}

// inhabited reports whether a process lives in the namespace that the directory is named after: a host
// whose one uplink is away looks dead otherwise.
func inhabited(dir string) bool {
	_, inode, _ := strings.Cut(filepath.Base(dir), "-")
	spaces, _ := filepath.Glob("/proc/[0-9]*/ns/net")
	for _, space := range spaces {
		if name, err := os.Readlink(space); err == nil && name == "net:["+inode+"]" {
			return true
		}
	}
	return false
}

func attached(pin string) bool {
	l, err := link.LoadPinnedLink(pin, nil)
	if err != nil {
		return true // not ours to judge
	}
	defer l.Close()
	info, err := l.Info()
	return err != nil || info.TCX() == nil || info.TCX().Ifindex != 0
}
