package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// threeControllers is a lab of their own.
func threeControllers(t *testing.T) *network {
	t.Helper()
	return severalControllers(t, "testdata/controllers.yaml", "3k", hurried(t))
}

// severalControllers is a lab for one test; binary is "" for this program.
func severalControllers(t *testing.T, path, name, binary string) *network {
	t.Helper()
	nstest.Root(t)
	f, err := file.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Name = nstest.LabName() + name
	if binary == "" {
		binary = self
	}
	l, err := lab.Up(t.Context(), f, lab.Options{Binary: binary})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := lab.Down(context.Background(), f.Name, lab.Options{}); err != nil {
			t.Error(err)
		}
	})
	admin, err := l.Admin()
	if err != nil {
		t.Fatal(err)
	}
	n := &network{t, l, admin, map[string]*nstest.NS{}}
	t.Cleanup(n.explain)
	return n
}

// A churn changes the network all the time: services, policies, registrations. It remembers what was acknowledged.
type churn struct {
	n    *network
	stop chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex
	acked map[string]uint32 // weights by service
}

// churned begins the names of its services.
const churned = "churn"

func (n *network) startChurn() *churn {
	c := &churn{n: n, stop: make(chan struct{}), acked: map[string]uint32{}}
	c.done.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-c.stop:
				return
			default:
				c.change(fmt.Sprintf("%s%d", churned, i))
			}
		}
	})
	return c
}

// change creates a service and changes its policy. What is refused or gets no answer counts for nothing.
func (c *churn) change(name string) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	admin, err := c.n.lab.Admin()
	if err != nil {
		return
	}
	for weight := uint32(1); weight <= 2; weight++ {
		policy := &apiv1.Policy{Weight: weight}
		if weight == 1 {
			_, err = admin.CreateService(ctx, connect.NewRequest(&apiv1.CreateServiceRequest{Name: name, Policy: policy}))
		} else {
			_, err = admin.UpdatePolicy(ctx, connect.NewRequest(&apiv1.UpdatePolicyRequest{Name: name, Policy: policy, Replace: true}))
		}
		c.mu.Lock()
		if err == nil {
			c.acked[name] = weight
		} else if weight == 2 && c.acked[name] == 1 {
			c.acked[name] = 0 // either
		}
		c.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (c *churn) count() int { c.mu.Lock(); defer c.mu.Unlock(); return len(c.acked) }

// grows waits until more was acknowledged.
func (c *churn) grows(when string) {
	c.n.t.Helper()
	before := c.count()
	nstest.Wait(c.n.t, "changes "+when, func() error {
		if c.count() < before+3 {
			return fmt.Errorf("%d acknowledged since", c.count()-before)
		}
		return nil
	})
}

// allThere compares what was acknowledged with what the network has.
func (c *churn) allThere() {
	c.n.t.Helper()
	close(c.stop)
	c.done.Wait()
	admin, err := c.n.lab.Admin()
	if err != nil {
		c.n.t.Fatal(err)
	}
	list, err := admin.ListServices(c.n.t.Context(), connect.NewRequest(&apiv1.ListServicesRequest{}))
	if err != nil {
		c.n.t.Fatal(err)
	}
	have := map[string]uint32{}
	for _, s := range list.Msg.Services {
		have[s.Name] = s.Policy.GetWeight()
	}
	for name, want := range c.acked {
		if got, ok := have[name]; !ok || want != 0 && got != want {
			c.n.t.Errorf("service %s was acknowledged with weight %d; it has %d, and is there: %v", name, want, got, ok)
		}
	}
	c.n.t.Logf("%d changes were acknowledged", len(c.acked))
}

// controllers are the states of all, as any of them says.
func (n *network) controllers() (states map[string]string, leader string, err error) {
	admin, err := n.lab.Admin()
	if err != nil {
		return nil, "", err
	}
	return n.controllersBy(admin)
}

// controllersBy is as one of them says.
func (n *network) controllersBy(admin apiv1connect.AdminClient) (states map[string]string, leader string, err error) {
	list, err := admin.ListControllers(n.t.Context(), connect.NewRequest(&apiv1.ListControllersRequest{}))
	if err != nil {
		return nil, "", err
	}
	states = map[string]string{}
	for _, c := range list.Msg.Controllers {
		states[c.Name] = c.State
		if c.State == "leads" {
			leader = c.Name
		}
	}
	return states, leader, nil
}

// all waits until three controllers run and one leads, and says which.
func (n *network) allRun(not string) (leader, standby string) {
	n.t.Helper()
	nstest.Wait(n.t, "three controllers", func() error {
		states, l, err := n.controllers()
		leader = l
		for name, s := range states {
			if s == "stands by" {
				standby = name
			}
			if s == "gone" && name != not {
				return fmt.Errorf("%v", states)
			}
		}
		if err != nil || leader == "" || leader == not || len(states) != 3 {
			return fmt.Errorf("%v, %q leads: %v", states, leader, err)
		}
		return nil
	})
	return leader, standby
}

func TestControllersDieOneAfterTheOtherUnnoticed(t *testing.T) {
	n := threeControllers(t)
	addr := n.createLoaded("daemons")
	n.loadServers("s1", addr)
	n.loadServers("s2", addr)
	n.allServe()
	c1, s1 := n.locator("c1"), n.locator("s1")
	l, c := n.startLoad(addr), n.startChurn()
	var rekeying *rekeying
	c.grows("before anything happens")
	for _, what := range []string{"the leader", "one that stands by", "the leader again"} {
		leader, standby := n.allRun("")
		victim := leader
		switch what {
		case "one that stands by":
			victim = standby
		case "the leader again": // in the middle of it
			rekeying = n.rekeys(port(addr, askPort))
		}
		began := time.Now()
		n.do("kill " + victim + "/controld")
		n.admin, _ = n.lab.Admin()
		l.progress("while " + what + " is dead")
		n.newFlows(addr, "while "+what+" is dead")
		if victim == leader {
			n.allRun(victim)
			t.Logf("%s was killed: another one led after %v", what, time.Since(began).Round(10*time.Millisecond))
		}
		c.grows("while " + what + " is dead")
		n.newFlows(addr, "under the next")
		if victim != leader { // and who of the two that are left is asked for it does not matter
			(&mobile{network: n}).rotates("s2")
			l.progress("after s2 has got another key")
		}
		n.do("start " + victim + "/controld")
		n.allRun("")
		n.admin, _ = n.lab.Admin()
		n.settled()
		n.allServe()
		l.progress("after " + what + " is back")
	}
	if a, b := n.locator("c1"), n.locator("s1"); a != c1 || b != s1 {
		t.Errorf("locators of c1 and s1 were %v and %v, are %v and %v", c1, s1, a, b)
	}
	rekeying.ends(l)
	l.finish()
	c.allThere()
}
