package processes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"scaffold.dev/scaffold/internal/lab/plan"
)

// Files that a host of a lab has its own version of: names are asked of the host's daemon, and not
// of a resolver service of the machine.
const (
	resolvConf = "resolv.conf"
	nsswitch   = "nsswitch.conf"
	hostsFile  = "hosts"
)

// writeEtc writes a host's own versions of files in /etc.
func (p *Processes) writeEtc(n *plan.Node) error {
	text, sources := "nameserver ::1\nsearch "+p.Plan.File.Network.Domain+"\n", "files dns"
	if p.Plan.File.Bare { // nobody would answer
		text, sources = "", "files"
	}
	if err := os.WriteFile(filepath.Join(p.Dir.Node(n.Name), resolvConf), []byte(text), 0o644); err != nil {
		return err
	}
	system, err := os.ReadFile("/etc/" + nsswitch)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the C library's default is to ask DNS
	}
	if err != nil {
		return err
	}
	hosts := regexp.MustCompile(`(?m)^hosts:.*$`).ReplaceAllString(string(system), "hosts: "+sources)
	return os.WriteFile(filepath.Join(p.Dir.Node(n.Name), nsswitch), []byte(hosts), 0o644)
}

// hostsPath is the file that is /etc/hosts on all nodes of a network of plain IP.
func (p *Processes) hostsPath() string { return filepath.Join(p.Dir.Path(), hostsFile) }

// writeHosts lets nodes of a network of plain IP find each other by name: nobody there answers for names.
func (p *Processes) writeHosts() error {
	if !p.Plan.File.Bare {
		return nil
	}
	var text strings.Builder
	text.WriteString("127.0.0.1 localhost\n::1 localhost\n")
	for _, n := range p.Plan.Nodes {
		for _, a := range n.Known() {
			fmt.Fprintf(&text, "%v %s\n", a, n.Name)
		}
	}
	return os.WriteFile(p.hostsPath(), []byte(text.String()), 0o644)
}
