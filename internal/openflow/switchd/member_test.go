package switchd

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/tests/safety"
	"scaffold.dev/scaffold/sid"
)

const (
	here  = sid.Locator(0xfd5d_0000_0001_0100)
	hostA = here + 1
	hostB = here + 2
)

// An openVSwitch is a real one with a bridge, that connects to the daemon.
type openVSwitch struct {
	*nstest.OVS
	t    *testing.T
	name string
}

// connected makes a bridge with two ports, a and b, whose controller is at the target.
func connected(t *testing.T, ns *nstest.NS, ovs *nstest.OVS, name, target string, settings ...string) *openVSwitch {
	t.Helper()
	s := &openVSwitch{ovs, t, name}
	ovs.Bridge(t, name, "OpenFlow13,OpenFlow15")
	ovs.Vsctl(t, append([]string{"set", "bridge", name, "other-config:dp-desc=" + name}, settings...)...)
	for _, port := range []string{name + "-a", name + "-b"} {
		nstest.Veth(t, ns, port, nstest.New(t, port), "up")
		ns.Up(t, port)
		ovs.Vsctl(t, "add-port", name, port)
	}
	s.control(target)
	return s
}

// control has the switch connect to another controller. Open vSwitch takes sockets of its own directory alone.
func (s *openVSwitch) control(target string) {
	s.t.Helper()
	s.Vsctl(s.t, "set-controller", s.name, target)
}

// flows are the lines of dump-flows that have the text.
func (s *openVSwitch) flows(with string) (lines []string) {
	s.t.Helper()
	for _, line := range strings.Split(s.Ofctl(s.t, "-O", "OpenFlow15", "dump-flows", s.Dir+"/"+s.name+".mgmt"), "\n") {
		if strings.Contains(line, "table=") && strings.Contains(line, with) {
			lines = append(lines, line)
		}
	}
	return lines
}

var lasted = regexp.MustCompile(`duration=([0-9.]+)s`)

// youngest is how long the newest of our flows has been there.
func (s *openVSwitch) youngest() time.Duration {
	s.t.Helper()
	least := time.Duration(1 << 62)
	for _, line := range s.flows("cookie=0x5caf") {
		seconds, _ := strconv.ParseFloat(lasted.FindStringSubmatch(line)[1], 64)
		least = min(least, time.Duration(seconds*1e9))
	}
	return least
}

func hosts(name string) plan.Rules {
	return plan.Rules{
		Routes: []plan.Route{
			{Prefix: hostA.Prefix(), Port: name + "-a", MAC: [6]byte{2, 0, 0, 0, 0, 0xa}},
			{Prefix: hostB.Prefix(), Port: name + "-b", MAC: [6]byte{2, 0, 0, 0, 0, 0xb}},
		},
		Services: []plan.ServiceRule{{Service: webID, Instances: 2}},
		Resolutions: []plan.Resolution{{Triple: sid.Triple{Service: webID, Proto: sid.TCP, Port: 80},
			Targets: []resolve.Target{{Locator: hostA, Weight: 1}, {Locator: hostB, Weight: 2}}}},
	}
}

var webID = sid.ServiceID{SS: 1, Suffix: 0x1234567890}

func TestASwitchHoldsWhatTheControllerSays(t *testing.T) {
	ns := nstest.New(t, "switch")
	ovs := ns.NewOVS(t)
	d := drive(t, Config{Listen: []string{"unix:" + ovs.Dir + "/of"}})
	s := connected(t, ns, ovs, "r1", "unix:"+ovs.Dir+"/of")
	j := d.accept(here)
	if j.join.Name != "r1" || !j.join.Service {
		t.Errorf("the switch joins as %v, want r1, which resolves", j.join)
	}
	j.snapshot(1, hosts("r1"))
	d.note("switch.reconciled", "r1")
	if got := s.flows("ipv6_dst=fd5d:0:1:101::/64"); len(got) != 1 {
		t.Errorf("the way to a host is %d flows: %v", len(got), got)
	}
	gone := plan.Rules{Routes: []plan.Route{{Prefix: hostB.Prefix(), Gone: true}}}
	if failed := j.delta(2, gone); failed != "" {
		t.Error(failed)
	}
	if got := s.flows("ipv6_dst=fd5d:0:1:102::/64"); len(got) != 0 {
		t.Errorf("what was taken back is still there: %v", got)
	}
}

// Who gives a switch up takes out also what an earlier run has left in it, and that this one has not read yet.
func TestAReleaseTakesWhatAnEarlierRunLeft(t *testing.T) {
	safety.Test(t, safety.Trace)
	ns := nstest.New(t, "switch")
	ovs := ns.NewOVS(t)
	cfg := Config{Listen: []string{"unix:" + ovs.Dir + "/of"}}
	d := drive(t, cfg)
	connected(t, ns, ovs, "r1", "unix:"+ovs.Dir+"/of")
	d.accept(here).snapshot(1, hosts("r1"))
	d.note("switch.reconciled", "r1")
	d.stop()
	cfg.Release = true
	d.run(cfg)
	nstest.Receive(t, "the log of switchd: no switch joined", d.joins) // and its controller says nothing
	d.stop()
	left := ""
	for _, what := range []string{"dump-flows", "dump-groups", "dump-meters"} {
		left += ovs.Ofctl(t, "-O", "OpenFlow15", what, ovs.Dir+"/r1.mgmt")
	}
	for _, of := range []string{"cookie=0x5caf", "group_id=155", "meter=155"} {
		if strings.Contains(left, of) {
			t.Errorf("%s… is left behind:\n%s", of, left)
		}
	}
}

// What others have in the switch stays, while we come, change, restart and give up; what is ours is not touched
// by a restart, and nothing else than ours goes at the end.
func TestARestartDisturbsNothingAndAReleaseTakesExactlyOurs(t *testing.T) {
	ns := nstest.New(t, "switch")
	ovs := ns.NewOVS(t)
	cfg := Config{Listen: []string{"unix:" + ovs.Dir + "/of"}}
	d := drive(t, cfg)
	s := connected(t, ns, ovs, "r1", "unix:"+ovs.Dir+"/of")
	mgmt := ovs.Dir + "/r1.mgmt"
	ovs.Ofctl(t, "-O", "OpenFlow15", "add-flow", mgmt, "table=0,priority=0,actions=NORMAL")
	ovs.Ofctl(t, "-O", "OpenFlow15", "add-flow", mgmt, "cookie=0x77,table=14,priority=9,tcp,tp_dst=9,actions=drop")
	ovs.Ofctl(t, "-O", "OpenFlow15", "add-group", mgmt, "group_id=7,type=all,bucket=output:1")
	foreign := func() (lines []string) {
		for _, line := range s.flows("") {
			if !strings.Contains(line, "cookie=0x5caf") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	d.accept(here).snapshot(1, hosts("r1"))
	d.note("switch.reconciled", "r1")
	began := time.Now()
	d.stop()
	d.run(cfg)
	d.accept(here).snapshot(2, hosts("r1"))
	d.note("switch.reconciled", "r1")
	since := time.Since(began) // before the switch is asked, which says its ages in milliseconds
	if age := s.youngest(); age+time.Millisecond < since {
		t.Errorf("a flow was put in %v ago, the restart began %v ago: %v", age, since, s.flows("cookie=0x5caf"))
	}
	d.stop()
	cfg.Release = true
	d.run(cfg)
	d.accept(here).snapshot(3, hosts("r1"))
	d.note("switch.reconciled", "r1")
	d.stop()
	if got := s.flows("cookie=0x5caf"); len(got) != 0 {
		t.Errorf("%d flows of ours are left: %v", len(got), got)
	}
	if got := foreign(); len(got) != 2 {
		t.Errorf("of others there are %d flows, want 2: %v", len(got), got)
	}
	groups := ovs.Ofctl(t, "-O", "OpenFlow15", "dump-groups", mgmt)
	if !strings.Contains(groups, "group_id=7") || strings.Contains(groups, "group_id=155") {
		t.Errorf("want group 7 of somebody else and none of ours:\n%s", groups)
	}
	if meters := ovs.Ofctl(t, "-O", "OpenFlow15", "dump-meters", mgmt); strings.Contains(meters, "meter=155") {
		t.Errorf("meters of ours are left:\n%s", meters)
	}
}

// Somebody takes rules of ours away: they are back long before the next audit, and an event says so.
func TestWhatSomebodyTakesAwayIsPutBackAtOnce(t *testing.T) {
	defer func(d time.Duration) { checkEvery = d }(checkEvery)
	checkEvery = time.Hour
	ns := nstest.New(t, "switch")
	ovs := ns.NewOVS(t)
	d := drive(t, Config{Listen: []string{"unix:" + ovs.Dir + "/of"}})
	s := connected(t, ns, ovs, "r1", "unix:"+ovs.Dir+"/of")
	d.accept(here).snapshot(1, hosts("r1"))
	d.note("switch.reconciled", "r1")
	before := len(s.flows("cookie=0x5caf"))
	for _, what := range [][]string{{"del-flows", "table=16"}, {"del-groups"}, {"del-flows"}} {
		args := append([]string{"-O", "OpenFlow15", what[0], ovs.Dir + "/r1.mgmt"}, what[1:]...)
		ovs.Ofctl(t, args...)
		d.note("switch.repair", "r1")
		nstest.Wait(t, "the flows of r1", func() error {
			if n := len(s.flows("cookie=0x5caf")); n != before {
				return errFlows(n)
			}
			return nil
		})
	}
}

// What somebody changes without taking it away is put right at the next audit.
func TestWhatSomebodyChangesIsPutRight(t *testing.T) {
	defer func(d time.Duration) { checkEvery = d }(checkEvery)
	checkEvery = 200 * time.Millisecond
	ns := nstest.New(t, "switch")
	ovs := ns.NewOVS(t)
	d := drive(t, Config{Listen: []string{"unix:" + ovs.Dir + "/of"}})
	s := connected(t, ns, ovs, "r1", "unix:"+ovs.Dir+"/of")
	d.accept(here).snapshot(1, hosts("r1"))
	d.note("switch.reconciled", "r1")
	ovs.Ofctl(t, "-O", "OpenFlow15", "mod-flows", ovs.Dir+"/r1.mgmt", "table=16,actions=drop")
	d.note("switch.repair", "r1")
	nstest.Wait(t, "the flows of r1", func() error {
		for _, line := range s.flows("table=16,") {
			if strings.Contains(line, "actions=drop") {
				return errors.New(line)
			}
		}
		return nil
	})
}

type errFlows int

func (n errFlows) Error() string { return strconv.Itoa(int(n)) + " flows are there" }

// The carrier of a port tells of its hosts before any probe does.
func TestAHostWhosePortLosesItsCarrierIsGoneAtOnce(t *testing.T) {
	ns := nstest.New(t, "switch")
	ovs := ns.NewOVS(t)
	d := drive(t, Config{Listen: []string{"unix:" + ovs.Dir + "/of"}})
	connected(t, ns, ovs, "r1", "unix:"+ovs.Dir+"/of")
	j := d.accept(here)
	r := hosts("r1")
	r.Probes = []plan.Probe{{Locator: hostA, Port: "r1-a"}}
	j.snapshot(1, r)
	ns.Down(t, "r1-a")
	for {
		report := nstest.Receive(t, "the reports: the host is not gone by its carrier", j.reports)
		for _, h := range report.GetHosts().GetHosts() {
			if h.Locator == uint64(hostA) && h.State == "gone" && h.Reason == "carrier" {
				return
			}
		}
	}
}

// Of several controllers of one network only one may write.
func TestAPrimaryIsTheOnlyOneThatWrites(t *testing.T) {
	ns := nstest.New(t, "switch")
	ovs := ns.NewOVS(t)
	d := drive(t, Config{Listen: []string{"unix:" + ovs.Dir + "/of"}, Primary: true})
	s := connected(t, ns, ovs, "r1", "unix:"+ovs.Dir+"/of")
	d.accept(here).snapshot(7<<32, hosts("r1"))
	nstest.Wait(t, "the role that r1 gives its controller", func() error {
		if got := strings.TrimSpace(s.Vsctl(t, "get", "controller", "r1", "role")); got != "master" {
			return errRole(got)
		}
		return nil
	})
}

type errRole string

func (r errRole) Error() string { return "it is " + string(r) }
