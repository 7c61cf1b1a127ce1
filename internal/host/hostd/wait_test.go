package hostd

import (
	"fmt"
	"testing"
)

// A daemon that starts while its last place leads nowhere keeps the flows of it: they move to the next one.
func TestAHostThatMovesWhileItsDaemonIsDeadKeepsItsFlows(t *testing.T) {
	l := newLink(t)
	d := l.start(t, twoUplinks)
	l.has(t, d, serviceBy("up0"))
	l.saved(t, 1)
	d.Kill()
	l.host.Down(t, "up0")
	l.forget()
	d = l.start(t, twoUplinks)
	d.WaitFor(t, "its flows wait")
	l.second(t)
	d.WaitFor(t, fmt.Sprintf("flows move\" from=%v to=%v", locator1, locator2))
	l.has(t, d, serviceBy("up1"))
}
