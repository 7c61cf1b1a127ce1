package routerd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A forwarding is what the kernel's switches were before this process: file to value. Empty where IPv6
// forwarding was on already, by somebody else or by a routerd that was killed.
type forwarding map[string]string

const (
	forwardingOfAll = "/proc/sys/net/ipv6/conf/all/forwarding"
	forwardingOfNew = "/proc/sys/net/ipv6/conf/default/forwarding"
)

// forward makes the namespace a router: all interfaces that are there, and those that come.
func forward() (before forwarding, err error) {
	files, _ := filepath.Glob("/proc/sys/net/ipv6/conf/*/forwarding")
	before = make(forwarding)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the interface went
		}
		before[file] = strings.TrimSpace(string(text))
	}
	for _, file := range []string{forwardingOfAll, forwardingOfNew} {
		if err := os.WriteFile(file, []byte("1"), 0); err != nil {
			return nil, fmt.Errorf("switch IPv6 forwarding on: %w", err)
		}
	}
	if before[forwardingOfAll] == "1" {
		return nil, nil
	}
	return before, nil
}

// restore puts the switches back. The one of all interfaces writes every other, so it goes first.
func (f forwarding) restore() {
	if len(f) == 0 {
		return
	}
	os.WriteFile(forwardingOfAll, []byte(f[forwardingOfAll]), 0) //nolint:errcheck // it was read and written before
	for file, value := range f {
		if value != f[forwardingOfAll] {
			os.WriteFile(file, []byte(value), 0) //nolint:errcheck // the interface may have gone
		}
	}
}
