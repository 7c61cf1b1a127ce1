package stats

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Held lists the programs that a process holds by descriptors, of the programs themselves or of their links.
func Held(pid int) []uint32 { return held(fmt.Sprint(pid)) }

// held is Held of all processes whose number matches a pattern.
func held(pids string) (ids []uint32) {
	infos, _ := filepath.Glob("/proc/" + pids + "/fdinfo/*")
	for _, path := range infos {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended, or closed it
		}
		for line := range strings.Lines(string(text)) {
			var id uint32
			if n, _ := fmt.Sscanf(line, "prog_id: %d", &id); n == 1 {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// Unheld lists the programs in the kernel that no process holds by a descriptor: pinned ones, and those that hang on an
// interface or a cgroup.
func Unheld() (map[uint32]string, error) {
	all, err := Loaded()
	if err != nil {
		return nil, err
	}
	for _, id := range held("[0-9]*") {
		delete(all, id)
	}
	return all, nil
}
