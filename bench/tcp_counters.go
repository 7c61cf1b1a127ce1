package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// tcpCounters are of all connections of a network namespace.
type tcpCounters struct{ timeouts, segments float64 }

// countersOf reads those of the namespace of a process.
func countersOf(pid int) (c tcpCounters, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/netstat", pid))
	if err != nil {
		return c, err
	}
	if c.timeouts, err = counter(string(text), "TcpExt", "TCPTimeouts"); err != nil {
		return c, err
	}
	if text, err = os.ReadFile(fmt.Sprintf("/proc/%d/net/snmp", pid)); err != nil {
		return c, err
	}
	c.segments, err = counter(string(text), "Tcp", "RetransSegs")
	return c, err
}

// counter finds a value in pairs of lines, names above values, as /proc/net/snmp has them.
func counter(text, group, name string) (float64, error) {
	var names []string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != group+":" {
			continue
		}
		if names == nil {
			names = words
			continue
		}
		for i, n := range names {
			if n == name && i < len(words) {
				return strconv.ParseFloat(words[i], 64)
			}
		}
	}
	return 0, fmt.Errorf("the kernel has no counter %s of %s", name, group)
}
