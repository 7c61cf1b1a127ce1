package doctor

import (
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"

	"scaffold.dev/scaffold/internal/bpf/features"
	"scaffold.dev/scaffold/sid"
)

// A Machine is what the examination looks at.
type Machine struct {
	Read     func(path string) (string, bool)                  // a file's text, without white space around it; false: not there
	Run      func(name string, args ...string) (string, error) // a program's output
	Features func() []features.Feature                         // trial loads
	Links    func() ([]Link, error)                            // interfaces
	Synced   func() (bool, error)                              // whether the clock is synchronised
	Space    sid.Space                                         // the network's addresses
	Network  func() (Network, bool)                            // what the daemons here say of theirs; nil, false: none answers
}

// A Link is one interface and its addresses.
type Link struct {
	Name      string
	MTU       int
	Up        bool
	Loopback  bool
	Addresses []netip.Prefix
}

// A Network is one that daemons of this machine belong to.
type Network struct {
	Trust   string // "open", "keys"; "": it cannot be said from here
	Exposed []Hole
}

// A Hole is where others than members get into a network.
type Hole struct{ Found, Cost, Do string }

// Here is the machine, or rather the network namespace, that this process runs in.
func Here(space sid.Space) Machine {
	return Machine{Read: readFile, Run: run, Features: features.Probe, Links: interfaces, Synced: synced, Space: space}
}

func readFile(path string) (string, bool) {
	text, err := os.ReadFile(path)
	return strings.TrimSpace(string(text)), err == nil
}

func run(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	return string(out), err
}

func interfaces() ([]Link, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var links []Link
	for _, i := range all {
		l := Link{Name: i.Name, MTU: i.MTU, Up: i.Flags&net.FlagUp != 0, Loopback: i.Flags&net.FlagLoopback != 0}
		addresses, _ := i.Addrs() // an interface that just vanished has none
		for _, a := range addresses {
			if p, err := netip.ParsePrefix(a.String()); err == nil {
				l.Addresses = append(l.Addresses, p)
			}
		}
		links = append(links, l)
	}
	return links, nil
}

// synced asks the kernel whether something disciplines its clock.
func synced() (bool, error) {
	var t unix.Timex
	_, err := unix.Adjtimex(&t)
	return err == nil && t.Status&unix.STA_UNSYNC == 0, err
}
