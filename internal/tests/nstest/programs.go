package nstest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"scaffold.dev/scaffold/internal/bpf/stats"
)

// Programs lists the BPF programs of the machine that no process holds by a descriptor: pinned ones, and those that hang
// on an interface or a cgroup.
func Programs() (map[uint32]string, error) {
	all, err := stats.Loaded()
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
