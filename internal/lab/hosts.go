package lab

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// hostsPath is the file that is /etc/hosts on all nodes of a network of plain IP.
func (l *Lab) hostsPath() string { return filepath.Join(l.Dir(), hostsFile) }

// writeHosts lets nodes of a network of plain IP find each other by name: nobody there answers for names.
func (l *Lab) writeHosts() error {
	if !l.File.bare {
		return nil
	}
	var text strings.Builder
	text.WriteString("127.0.0.1 localhost\n::1 localhost\n")
	for _, n := range l.plan.Nodes {
		for _, a := range n.Known() {
			fmt.Fprintf(&text, "%v %s\n", a, n.Name)
		}
	}
	return os.WriteFile(l.hostsPath(), []byte(text.String()), 0o644)
}
