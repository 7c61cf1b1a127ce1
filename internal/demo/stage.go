package demo

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// A Stage is the running lab as the demo sees it.
type Stage interface {
	// Do carries out one action of a lab file's timeline, such as "kill s2/nginx".
	Do(ctx context.Context, action string) error
	// Command makes a command that runs on a node; the caller starts it.
	Command(node string, argv ...string) (*exec.Cmd, error)
	// Dir is the directory of a program's files.
	Dir(node, program string) string
	// Service asks the controller.
	Service(ctx context.Context, name string) (*apiv1.Service, error)
}

// servers are the hosts of examples/web.yaml that run nginx, in the order in which they start.
var servers = []string{"s1", "s2", "s3"}

// accessLogs counts the lines of each server's access log: what the servers themselves saw.
func accessLogs(st Stage) (map[string]int, error) {
	counts := map[string]int{}
	for _, s := range servers {
		raw, err := os.ReadFile(filepath.Join(st.Dir(s, "nginx"), "access.log"))
		if err != nil && !os.IsNotExist(err) {
			return nil, fmt.Errorf("count requests: %w", err)
		}
		for _, b := range raw {
			if b == '\n' {
				counts[s]++
			}
		}
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
