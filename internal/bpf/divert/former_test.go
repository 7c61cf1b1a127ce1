package divert

import (
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// An agent of before that was killed has left rules and routes of other numbers than today's agents have: they go. What a host's
// daemon has under the same numbers stays, and so does what somebody else has.
func TestWhatAFormerAgentLeftIsTakenAway(t *testing.T) {
	safety.Test(t, safety.Trace)
	n, ports := router(t)
	for _, family := range []string{"-4", "-6"} {
		for _, others := range [][]string{
			{"rule", "add", "pref", "95", "fwmark", "0x5cb0", "lookup", "23728"}, // of no port: nobody's that we know
			{"rule", "add", "pref", "96", "fwmark", "0x5cb0", "iif", "p0", "lookup", "23728"},
			{"rule", "add", "pref", "95", "fwmark", "0x5cb1", "iif", "p0", "lookup", "23728"},
			{"rule", "add", "pref", "95", "fwmark", "0x5cb0", "iif", "p0", "lookup", "23727"},
			{"rule", "add", "pref", "56496", "ipproto", "udp", "lookup", "23728"}, // as a host's daemon has it
		} {
			n.Run(t, append([]string{"ip", family}, others...)...)
		}
	}
	n.Run(t, "ip", "-6", "route", "add", "fd00::/48", "dev", "lo", "proto", "92", "table", "23728")
	n.Run(t, "ip", "-6", "route", "add", "unreachable", "default", "dev", "lo", "metric", "7", "table", "23728")
	n.Run(t, "ip", "-4", "route", "add", "local", "10.0.0.0/8", "dev", "lo", "table", "23728")
	before := routing(t, n)
	for _, family := range []string{"-4", "-6"} {
		n.Run(t, "ip", family, "rule", "add", "pref", "95", "fwmark", "0x5cb0", "iif", "p0", "lookup", "23728")
		n.Run(t, "ip", family, "rule", "add", "pref", "95", "fwmark", "0x5cb0", "iif", "gone", "lookup", "23728")
		n.Run(t, "ip", family, "route", "add", "local", "default", "dev", "lo", "table", "23728")
	}
	d := openIn(t, n, Config{Ports: ports})
	for _, line := range strings.Split(before, "\n") {
		if !strings.Contains(routing(t, n), line) {
			t.Errorf("an agent that runs has taken away: %s", line)
		}
	}
	must(t, d.Close())
	if after := routing(t, n); after != before {
		t.Errorf("before the former agent:\n%s\nbehind today's:\n%s", before, after)
	}
}

func routing(t *testing.T, n *nstest.NS) string {
	t.Helper()
	var b strings.Builder
	for _, family := range []string{"-4", "-6"} {
		b.WriteString(n.Run(t, "ip", family, "rule"))
		b.WriteString(n.Run(t, "ip", family, "route", "show", "table", "23728"))
	}
	return b.String()
}
