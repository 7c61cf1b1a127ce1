package demo

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
)

// servers are the hosts of examples/web.yaml that run nginx, in the order in which they start.
var servers = []string{"s1", "s2", "s3"}

// accessLogs counts the lines of each server's access log: what the servers themselves saw.
func (s *show) accessLogs() (map[string]int, error) {
	counts := map[string]int{}
	for _, server := range servers {
		raw, err := os.ReadFile(filepath.Join(s.ProgramDir(server, "nginx"), "access.log"))
		if err != nil && !os.IsNotExist(err) {
			return nil, fmt.Errorf("count requests: %w", err)
		}
		counts[server] = bytes.Count(raw, []byte{'\n'})
	}
	return counts, nil
}

// since subtracts an earlier reading.
func since(now, before map[string]int) map[string]int {
	d := map[string]int{}
	for _, s := range servers {
		d[s] = now[s] - before[s]
	}
	return d
}
