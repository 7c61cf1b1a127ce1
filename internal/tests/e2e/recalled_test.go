package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestAControllerThatIsBackPlansWhoServesWithoutADaemon: the only server's daemon is away, its kernel serves on, and the
// controller is started again: before, during and after its grace connections are answered.
func TestAControllerThatIsBackPlansWhoServesWithoutADaemon(t *testing.T) {
	n := theNetwork(t)
	at := n.servedAlone("recalled")
	n.kill("s1/hostd")
	defer func() {
		n.do("start s1/hostd")
		n.settled()
	}()
	n.answered(at, "without the server's daemon")
	n.kill("ctl/controld")
	n.answered(at, "without a controller")
	n.do("start ctl/controld")
	n.sendsRules(at)
	n.answered(at, "after the grace")
}

// TestANewLeaderPlansWhoServesWithoutADaemon: the same, and of three controllers another one leads.
func TestANewLeaderPlansWhoServesWithoutADaemon(t *testing.T) {
	n := threeControllers(t)
	at := n.servedAlone("recalled")
	leader, _ := n.allRun("")
	n.kill("s1/hostd")
	n.answered(at, "without the server's daemon")
	n.kill(leader + "/controld")
	n.answered(at, "without a leader")
	next, _ := n.allRun(leader)
	t.Logf("%s led, %s leads", leader, next)
	n.sendsRules(at)
	n.answered(at, "under another leader, after its grace")
	n.do("start s1/hostd")
	n.settled()
	n.answered(at, "when the daemon is back")
}

// servedAlone is a service of which s1 is the only server, and the controller's store says so.
func (n *network) servedAlone(name string) netip.AddrPort {
	n.t.Helper()
	at := netip.AddrPortFrom(n.create(name), 80)
	n.serveTCP("s1", at.String())
	n.serving(name, "tcp", 80, 1)
	n.stored("s1", 1)
	return at
}

// stored waits until the controllers' store has that a host's instances, so many of them, are ready: it has it a moment after
// the routers.
func (n *network) stored(host string, ready int) {
	n.t.Helper()
	nstest.Wait(n.t, n.look(), func() error {
		stream, err := n.admin.BackupState(n.t.Context(), connect.NewRequest(&apiv1.BackupStateRequest{}))
		if err != nil {
			return err
		}
		var all bytes.Buffer
		for stream.Receive() {
			all.Write(stream.Msg().Data)
		}
		for line := range strings.Lines(all.String()) {
			if strings.Contains(line, `"registrations/`+host+`/1"`) && strings.Count(line, `"ready":true`) >= ready {
				return nil
			}
		}
		return errors.Join(fmt.Errorf("%d ready instances of %s are not stored", ready, host), stream.Err())
	})
}

// sendsRules waits until a controller that began to lead has sent rules; connections are answered all the while.
func (n *network) sendsRules(at netip.AddrPort) {
	n.t.Helper()
	nstest.Wait(n.t, n.look(), func() (err error) {
		n.answered(at, "while the controller waits for hosts")
		if n.admin, err = n.lab.Admin(); err != nil {
			return err
		}
		return n.applied()
	})
}

// answered has connections answered, each of them.
func (n *network) answered(at netip.AddrPort, when string) {
	n.t.Helper()
	if err := only(n.connects("c1", at, 20), unix.Errno(0)); err != nil {
		n.t.Fatalf("%s: %v\nlook at: %s", when, err, n.look())
	}
}
