package e2e

import (
	"fmt"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// TestCommandsOutliveAChangeOfLeader: the leader of three is killed while commands are given at a host and at a controller
// that stands by. None fails, and none is carried out twice.
func TestCommandsOutliveAChangeOfLeader(t *testing.T) {
	n := severalControllers(t, "testdata/orders.yaml", "3o", "")
	leader, standby := n.allRun("")
	var done atomic.Int64
	var loops sync.WaitGroup
	stop := make(chan struct{})
	for i, node := range []string{"c1", "c1", "c1", standby, standby} {
		loops.Go(func() {
			for k := 0; ; k++ {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Sprintf("w%d-%d", i, k)
				for _, command := range [][]string{{"service", "create", name}, {"service", "policy", name, "--dscp", "46"}} {
					out, err := exec.Command(self, append(command, "--api", "unix:"+n.lab.Socket(node))...).CombinedOutput()
					if err != nil {
						t.Errorf("at %s: %v: %v: %s", node, command, err, out)
						return
					}
				}
				done.Add(1)
			}
		})
	}
	grows := func(when string) {
		t.Helper()
		before := done.Load()
		nstest.Wait(t, "commands "+when, func() error {
			if t.Failed() || done.Load() >= before+10 {
				return nil
			}
			return fmt.Errorf("%d services were made and changed", done.Load()-before)
		})
	}
	grows("under the first leader")
	n.do("kill " + leader + "/controld")
	n.admin, _ = n.lab.Admin()
	n.allRun(leader)
	grows("under the next leader")
	close(stop)
	loops.Wait()

	count := map[string]int{}
	stream, err := n.admin.WatchEvents(t.Context(), connect.NewRequest(&apiv1.WatchEventsRequest{History: 8192, Audit: true}))
	if err != nil {
		t.Fatal(err)
	}
	for stream.Receive() {
		count[stream.Msg().Kind+" "+stream.Msg().Subject]++
	}
	list, err := n.admin.ListServices(t.Context(), connect.NewRequest(&apiv1.ListServicesRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list.Msg.Services {
		if s.Version != 2 || count["service.create "+s.Name] != 1 || count["service.policy "+s.Name] != 1 {
			t.Errorf("service %s is of version %d, made %d times and changed %d times, want version 2, once and once", s.Name, s.Version, count["service.create "+s.Name], count["service.policy "+s.Name])
		}
	}
	t.Logf("%d services were made and changed", done.Load())
}
