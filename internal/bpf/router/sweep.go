package router

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/cilium/ebpf/link"
)

// Sweep removes what routers whose network namespaces are gone have left in their directories, which
// are those that match the pattern.
func Sweep(pattern string) error {
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		if abandoned(dir) {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
}

// abandoned reports whether links are pinned in dir and none has an interface any more.
func abandoned(dir string) bool {
	pins, _ := filepath.Glob(filepath.Join(dir, linkPin+"*"))
	for _, pin := range pins {
		if alive(pin) {
			return false
		}
	}
	return len(pins) > 0
}

func alive(pin string) bool {
	l, err := link.LoadPinnedLink(pin, nil)
	if err != nil {
		return false
	}
	defer l.Close()
	info, err := l.Info()
	return err == nil && info.TCX() != nil && info.TCX().Ifindex != 0
}
