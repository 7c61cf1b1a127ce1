package e2e

import (
	"fmt"
	"testing"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestALeaderThatIsStoppedIsReplaced: its machine is there and answers nobody. Another one leads, and what it is told holds
// when the one of before goes on.
func TestALeaderThatIsStoppedIsReplaced(t *testing.T) {
	n := threeControllers(t)
	addr := n.createLoaded("daemons")
	n.loadServers("s1", addr)
	n.loadServers("s2", addr)
	n.allServe()
	l := n.startLoad(addr)
	leader, standby := n.allRun("")
	client, base, err := api.Dial("unix:" + n.lab.Socket(standby))
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	n.admin = apiv1connect.NewAdminClient(client, base)
	began := time.Now()
	n.do("stop " + leader + "/controld")
	l.progress("while the leader is stopped")
	n.newFlows(addr, "while the leader is stopped")
	next := ""
	nstest.Wait(t, "another leader", func() error {
		states, is, err := n.controllersBy(n.admin)
		if next = is; err != nil || is == "" || is == leader {
			return fmt.Errorf("%v, %q leads: %v", states, is, err)
		}
		return nil
	})
	t.Logf("%s was stopped: %s led after %v", leader, next, time.Since(began).Round(10*time.Millisecond))
	nstest.Wait(t, n.look(), func() error { // on a busy machine they may choose once more
		_, err := n.admin.CreateService(t.Context(), connect.NewRequest(&apiv1.CreateServiceRequest{Name: "later", Policy: &apiv1.Policy{Weight: 7}}))
		if connect.CodeOf(err) == connect.CodeUnavailable {
			return err
		}
		return nil
	})
	later := n.create("later")
	s := n.at("s1").Listen(t, "tcp6", port(later, 80))
	defer s.Close()
	n.serving("later", "tcp", 80, 1) // all routers have turned to the next
	n.settled()
	n.newFlows(addr, "under the next")

	n.do("cont " + leader + "/controld")
	nstest.Wait(t, "the one of before", func() error {
		states, is, err := n.controllersBy(n.admin)
		if err != nil || is == "" || states[leader] != "leads" && states[leader] != "stands by" {
			return fmt.Errorf("%v, %q leads: %v; want that one leads and that %s is there", states, is, err, leader)
		}
		return nil
	})
	n.settled()
	n.allServe()
	r, err := n.admin.GetService(t.Context(), connect.NewRequest(&apiv1.GetServiceRequest{Name: "later"}))
	if err != nil || r.Msg.Policy.GetWeight() != 7 {
		t.Errorf("service later: %v, %v; want the weight 7", r, err)
	}
	n.newFlows(addr, "after the one of before is back")
	l.progress("after the one of before is back")
	l.finish()
}
