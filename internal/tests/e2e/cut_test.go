package e2e

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestOnlyFlowsThatCanTurnToOthersLeaveAHostThatIsCutOff: that of a service with patience waits, and so does that
// which nobody else serves; both go on when the host is back.
func TestOnlyFlowsThatCanTurnToOthersLeaveAHostThatIsCutOff(t *testing.T) {
	m := theMobile(t)
	turns := m.talkingTo("cut-turns")
	waits := m.talkingTo("cut-waits", &apiv1.Policy{PatienceMs: 60_000})
	sole := m.talkingTo("cut-sole")
	given, kept, alone := turns.talkTCP("s2", 80), waits.talkTCP("s2", 80), sole.talkTCP("s2", 80)
	for _, s := range []*mobile{turns, waits} {
		l := s.at("s1").Listen(t, "tcp6", port(s.addr, 80))
		go accept(l, func(c net.Conn) { io.Copy(c, c) })
		m.serving(s.name, "tcp", 80, 2)
	}
	m.goOn("the beginning", given, kept, alone)
	moving.mu.Lock()
	here := moving.at["s2"]
	moving.mu.Unlock()
	m.do("cut s2 " + here)
	nstest.Wait(t, m.look(), func() error {
		err := given.failed.Load()
		if err == nil {
			return errors.New("the flow that could turn to another instance waits for the host that is cut off")
		}
		if !errors.Is(*err, syscall.ECONNRESET) {
			t.Fatalf("the flow ended with %v, want ECONNRESET", *err)
		}
		return nil
	})
	nstest.Wait(t, m.look(), func() error { return m.hostIs("s2", "gone") })
	m.do("heal s2 " + here)
	m.goOn("a cut", kept, alone)
	m.serving("cut-turns", "tcp", 80, 2)
}

// hostIs is an error while the controller holds a host for something else.
func (n *network) hostIs(name, state string) error {
	h, err := n.admin.GetHost(n.t.Context(), connect.NewRequest(&apiv1.GetHostRequest{Name: name}))
	if err == nil && h.Msg.State != state {
		err = fmt.Errorf("host %s is %s, want it %s", name, h.Msg.State, state)
	}
	return err
}
