package stats

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Unheld lists the programs in the kernel that no process holds by a descriptor: pinned ones, and those that hang on an
// interface or a cgroup.
func Unheld() (map[uint32]string, error) {
	all, err := Loaded()
	if err != nil {
		return nil, err
	}
	infos, _ := filepath.Glob("/proc/[0-9]*/fdinfo/*")
	for _, path := range infos {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		for line := range strings.Lines(string(text)) {
			var id uint32
			if n, _ := fmt.Sscanf(line, "prog_id: %d", &id); n == 1 {
				delete(all, id)
			}
		}
	}
	return all, nil
}
