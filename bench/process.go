package bench

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/bench/process"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/router/routerd"
)

// use is what the daemons of a node have taken so far.
type use struct {
	cpu   time.Duration
	bytes float64
}

// kernelMemory is what the kernel keeps for a node of the lab: the maps of its router or its edge, and the memory of
// its TCP, those connections included that are not accepted yet.
func (r *Rig) kernelMemory(ctx context.Context, node string) (bytes float64, err error) {
	if r.Plan().Node(node).Kind == file.Host {
		err = r.AskHost(node, func(c apiv1connect.LocalClient) error {
			s, err := c.GetHostStatus(ctx, connect.NewRequest(&apiv1.GetHostStatusRequest{}))
			if err == nil {
				bytes = float64(s.Msg.KernelBytes)
			}
			return err
		})
	} else {
		var s *scale
		var status routerd.Status
		if s, err = askRouter(r, node); err == nil {
			status, err = s.status(ctx)
			bytes = float64(status.TableBytes)
		}
	}
	return bytes, err
}

// tcpSlabs are the kernel's objects for connections and for what may become some, of the whole machine, in bytes.
func tcpSlabs() (bytes float64, err error) {
	text, err := os.ReadFile("/proc/slabinfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasSuffix(f[0], "TCPv6") && !strings.HasSuffix(f[0], "TCP") {
			continue
		}
		var active, size float64
		fmt.Sscan(f[1], &active) //nolint:errcheck // the kernel writes numbers
		fmt.Sscan(f[3], &size)   //nolint:errcheck // the same
		bytes += active * size
	}
	return bytes, nil
}

// uses are those of each node.
func (r *Rig) uses() (map[string]use, error) {
	status, err := r.Status()
	if err != nil {
		return nil, err
	}
	all := make(map[string]use)
	for _, n := range status.Nodes {
		u := all[n.Name]
		for _, p := range n.Processes {
			for _, pid := range p.PIDs {
				u.cpu, u.bytes = u.cpu+process.CPU(pid), u.bytes+process.Resident(pid)
			}
		}
		all[n.Name] = u
	}
	return all, nil
}
