package routerd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestForwardingIsAsItWasAfterRestarts: a daemon that takes over from one that was restarted, or killed, puts the switch
// back at its own end as the first one found it. What somebody else switched on stays on, and so it does where the note
// is of another network namespace.
func TestForwardingIsAsItWasAfterRestarts(t *testing.T) {
	nstest.Root(t)
	file := forwardingFile(filepath.Join(t.TempDir(), "routerd.sock"))
	runs := func(where *nstest.NS, daemons int) (value string) {
		where.Do(func() {
			var last forwarding
			for range daemons { // each but the last ends without putting anything back
				f, err := forward(file)
				if err != nil {
					t.Error(err)
				}
				last = f
			}
			last.restore()
			text, _ := os.ReadFile(forwardingOfAll)
			value = strings.TrimSpace(string(text))
		})
		return value
	}
	fresh, router := nstest.New(t, "fresh"), nstest.New(t, "router")
	fresh.Sysctl(t, "net/ipv6/conf/all/forwarding", "0")
	for daemons := 1; daemons < 4; daemons++ {
		if got := runs(fresh, daemons); got != "0" {
			t.Errorf("after %d daemons forwarding is %s, was 0", daemons, got)
		}
		if _, err := os.Stat(file); err == nil {
			t.Errorf("%s is left", file)
		}
	}
	fresh.Do(func() { _, _ = forward(file) }) // killed, and never started again
	router.Sysctl(t, "net/ipv6/conf/all/forwarding", "1")
	if got := runs(router, 2); got != "1" {
		t.Errorf("a machine that was a router before is none any more: %s", got)
	}
}
