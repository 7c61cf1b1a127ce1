package e2e

import (
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestWhatWorksWhileADaemonIsStopped: a daemon that does not run (SIGSTOP, a machine that swaps) is as one that is dead,
// though its sockets are there and take what nobody reads. A short run tries the one that a host has to get past.
func TestWhatWorksWhileADaemonIsStopped(t *testing.T) {
	p := thePairs(t)
	for _, x := range parts {
		if !chosen(x) || len(x.daemons) != 1 || len(x.links) > 0 || !nstest.Long() && x.name != "the client's routerd" {
			continue
		}
		began := time.Now()
		p.do("stop " + x.daemons[0])
		waiting := p.judge("the work of "+x.name, began, x.not)
		p.do("cont " + x.daemons[0])
		p.back(waiting)
	}
}
