package routerd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"scaffold.dev/scaffold/internal/linux/durable"
)

// A forwarding is what the kernel's switches were before the first routerd here: file to value. Empty where IPv6
// forwarding was on already, by somebody else. It is kept in a file, for a daemon that takes over from another one, one
// that was killed too, finds the switches on.
type forwarding struct {
	Before map[string]string `json:"before"`
	Netns  string            `json:"netns"` // which network namespace: those of labs come and go
	path   string
}

const (
	forwardingOfAll = "/proc/sys/net/ipv6/conf/all/forwarding"
	forwardingOfNew = "/proc/sys/net/ipv6/conf/default/forwarding"
)

// forwardingFile is beside the daemon's socket, below /run: the switches are as at boot when it has gone.
func forwardingFile(socket string) string { return strings.TrimSuffix(socket, ".sock") + ".forwarding" }

// forward makes the namespace a router: all interfaces that are there, and those that come.
func forward(path string) (f forwarding, err error) {
	f = forwarding{path: path, Before: make(map[string]string)}
	if f.Netns, err = os.Readlink("/proc/thread-self/ns/net"); err != nil {
		return f, err
	}
	files, _ := filepath.Glob("/proc/sys/net/ipv6/conf/*/forwarding")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the interface went
		}
		f.Before[file] = strings.TrimSpace(string(text))
	}
	if f.Before[forwardingOfAll] == "1" {
		f.takeUp()
		return f, nil
	}
	if text, err := json.Marshal(f); err == nil { // before the switches: a crash leaves nothing that is not known
		if err := durable.Write(path, text, 0o600); err != nil {
			return f, fmt.Errorf("note what IPv6 forwarding was: %w", err)
		}
	}
	for _, file := range []string{forwardingOfAll, forwardingOfNew} {
		if err := os.WriteFile(file, []byte("1"), 0); err != nil {
			return f, fmt.Errorf("switch IPv6 forwarding on: %w", err)
		}
	}
	return f, nil
}

// takeUp reads what a routerd before this one noted; without that the switches are somebody else's.
func (f *forwarding) takeUp() {
	var noted forwarding
	text, err := os.ReadFile(f.path)
	if err != nil || json.Unmarshal(text, &noted) != nil || noted.Netns != f.Netns {
		noted.Before = nil
	}
	f.Before = noted.Before
}

// restore puts the switches back. The one of all interfaces writes every other, so it goes first.
func (f *forwarding) restore() {
	if len(f.Before) > 0 {
		os.WriteFile(forwardingOfAll, []byte(f.Before[forwardingOfAll]), 0) //nolint:errcheck // it was read and written before
	}
	for file, value := range f.Before {
		// The file is below /run/scaffold, which root's group can write: only what it is about is written.
		if value != f.Before[forwardingOfAll] && strings.HasPrefix(filepath.Clean(file), "/proc/sys/net/ipv6/conf/") && filepath.Base(file) == "forwarding" {
			os.WriteFile(file, []byte(value), 0) //nolint:errcheck // the interface may have gone
		}
	}
	os.Remove(f.path) // where it is there
}
