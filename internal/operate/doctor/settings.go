package doctor

import (
	"fmt"
	"strconv"
)

// A setting is a sysctl that matters, and for which values.
type setting struct {
	path  string
	bad   func(value string) bool
	state State
	cost  string
	do    string
}

func is(want string) func(string) bool { return func(value string) bool { return value == want } }

func below(limit int) func(string) bool {
	return func(value string) bool {
		n, err := strconv.Atoi(value)
		return err == nil && n < limit
	}
}

// rmemWanted lets bursts of 64 kB frames wait in a packet socket. Open vSwitch has no option for its sockets'
// buffers, so that the default of all sockets decides.
const rmemWanted = 8 << 20

var sysctls = []setting{
	{"net/ipv6/conf/all/disable_ipv6", is("1"), InWay,
		"Scaffold's addresses are IPv6: nothing works", "sysctl -w net.ipv6.conf.all.disable_ipv6=0"},
	{"net/core/bpf_jit_enable", is("0"), Note,
		"programs are interpreted: several times the cost per packet", "sysctl -w net.core.bpf_jit_enable=1"},
	{"net/core/bpf_jit_harden", is("2"), Note,
		"constants are blinded: some per cent more per packet", "sysctl -w net.core.bpf_jit_harden=1"},
	{"net/ipv4/tcp_syncookies", is("0"), Note,
		"a connection cannot be adopted by another host", "sysctl -w net.ipv4.tcp_syncookies=1"},
	{"net/ipv4/tcp_timestamps", is("0"), Note,
		"old packets of a reused port are told apart by sequence numbers alone", "sysctl -w net.ipv4.tcp_timestamps=1"},
	{"net/core/rmem_default", below(rmemWanted), Note,
		"Open vSwitch in user space drops bursts: a stream through it got 10.6 Gbit/s where it gets 16.0 with 8 MB, and probes beside it are lost; hosts, Linux routers and the switches of labs, which are given room, do not care",
		fmt.Sprintf("where such a switch carries traffic, and on the machine itself, not in a container: sysctl -w net.core.rmem_default=%d, then start the switch anew", rmemWanted)},
}

func settings(m Machine) []Finding {
	var findings []Finding
	for _, s := range sysctls {
		value, ok := m.Read("/proc/sys/" + s.path)
		if !ok {
			continue // another kernel, or a namespace that does not show it
		}
		f := Finding{Area: "settings", Name: dotted(s.path), State: Good, Found: value}
		if s.bad(value) {
			f.State, f.Cost, f.Do = s.state, s.cost, s.do
		}
		findings = append(findings, f)
	}
	if _, ok := m.Read("/proc/net/if_inet6"); !ok {
		findings = append(findings, Finding{"settings", "IPv6", Missing, "the kernel was booted without it", "Scaffold's addresses are IPv6",
			"remove ipv6.disable=1 from the kernel's command line"})
	}
	return findings
}

// dotted is the name that sysctl(8) uses.
func dotted(path string) string {
	out := []byte(path)
	for i, c := range out {
		if c == '/' {
			out[i] = '.'
		}
	}
	return string(out)
}
