package daemons

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/plan"
	"scaffold.dev/scaffold/internal/lab/state"
)

// agentMemory is MiB for what is on its way to each other agent, each way: 500 Mbit/s for half a second.
const agentMemory = 32

// Agent writes the file of an agent whom others reach at an address of its host, and is how what carries its connections is
// started. The file has no port of the management network: no end host is there.
func Agent(p *plan.Plan, d state.Dir, binary string, n *plan.Node, door netip.Addr) ([]string, error) {
	dir := d.Program(n.Name, file.Boostd)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var ports, controllers []string
	for _, port := range n.Data() {
		ports = append(ports, port.Dev)
	}
	for url := range strings.SplitSeq(p.ControllerURLs(), ",") {
		controllers = append(controllers, fmt.Sprintf("%q", url))
	}
	text := fmt.Sprintf("name: %s\ndoor: %q\nports: [%s]\ncontrollers: [%s]\ncredentials: %s\n",
		n.Name, door, strings.Join(ports, ", "), strings.Join(controllers, ", "), dir)
	said := n.Settings
	if !slices.ContainsFunc(said, func(p file.Pair) bool { return p.Key == "memory" }) {
		text += fmt.Sprintf("memory: %d\n", agentMemory)
	}
	for _, p := range said {
		text += fmt.Sprintf("%s: %s\n", p.Key, p.Value)
	}
	path := filepath.Join(dir, "boostd.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, err
	}
	return []string{binary, file.Boostd, "--config", path, "--bpffs", d.BPF()}, nil
}
