package e2e

import (
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/versions"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// upgradeOrder is the order that docs/operate.md gives.
var upgradeOrder = []string{"ctl/controld", "r1/routerd", "r2/routerd", "s1/hostd", "s2/hostd", "c1/hostd"}

func TestUpgradeOneByOneLosesNothingInAnyOrder(t *testing.T) {
	safety.Test(t, safety.Flow)
	u := theUpgrade(t, baseVersion, "keys")
	for _, step := range []struct {
		what, version string
		order         []string
	}{
		{"up, in the order of the manual", "this", upgradeOrder},
		{"down, hosts first and the controller in the middle", baseVersion,
			[]string{"c1/hostd", "s1/hostd", "r2/routerd", "ctl/controld", "s2/hostd", "r1/routerd"}},
	} {
		if !u.replaceAll(step.what, step.version, step.order) || !nstest.Long() {
			return // back again: in a long run
		}
	}
}

// replaceAll replaces the daemons one by one under load. Flows that were there and flows that begin must not notice.
func (u *upgrade) replaceAll(what, version string, order []string) bool {
	since := u.lastEvent()
	l := u.startLoad(u.addr)
	c := u.callers()
	for i, daemon := range order {
		u.replace(daemon, version)
		if i == len(order)/2 {
			l.goesBy("c1", 0, 1) // between daemons of both versions
		}
		l.progress(what + ": while " + daemon + " starts")
		u.together()
		l.progress(what + ": after " + daemon + " is back")
		u.newFlows(u.addr, what+": after "+daemon)
	}
	l.goesBy("c1", 1, 0)
	l.finish()
	c.finish(u.t, what)
	u.nothingWithdrawn(since)
	u.allServe()
	u.run4(version)
	return !u.t.Failed()
}

// run4 fails unless all hosts say that they are of the version.
func (u *upgrade) run4(version string) {
	u.t.Helper()
	hosts, err := u.admin.ListHosts(u.t.Context(), connect.NewRequest(&apiv1.ListHostsRequest{}))
	if err != nil {
		u.t.Fatal(err)
	}
	for _, h := range hosts.Msg.Hosts {
		if isBase := h.Version == baseVersion; isBase != (version == baseVersion) {
			u.t.Errorf("host %s is of version %q, want %s", h.Name, h.Version, version)
		}
		if version != baseVersion && h.Protocol != versions.Agent().To {
			u.t.Errorf("host %s speaks protocol %d with a controller of its version, want %d", h.Name, h.Protocol, versions.Agent().To)
		}
	}
}

// Callers open connection after connection.
type callers struct {
	stop  atomic.Bool
	ended chan error
	over  chan struct{} // closed when none is opened any more
	calls int
}

func (u *upgrade) callers() *callers {
	c := &callers{ended: make(chan error, 1), over: make(chan struct{})}
	u.t.Cleanup(func() { // a test that fails goes on to take the namespaces away
		c.stop.Store(true)
		<-c.over
	})
	at := u.at("c1")
	to := port(u.addr, askPort)
	go func() {
		defer close(c.over)
		var err error
		for ; !c.stop.Load() && err == nil; c.calls++ {
			err = callOnce(at, to)
		}
		c.ended <- err
	}()
	return c
}

func callOnce(at *nstest.NS, to string) error {
	conn, err := at.Dial("tcp6", to)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = ask(conn, "again")
	return err
}

func (c *callers) finish(t *testing.T, what string) {
	t.Helper()
	c.stop.Store(true)
	if err := <-c.ended; err != nil {
		t.Errorf("%s: connection %d: %v", what, c.calls, err)
	}
	t.Logf("%s: %d connections, one after the other", what, c.calls)
}

func TestUpgradeThatCrashesAtStartHurtsNobody(t *testing.T) {
	u := theUpgrade(t, "this", "open")
	u.versions["broken"] = u.path + ".broken"
	if err := os.WriteFile(u.versions["broken"], []byte("#!/bin/sh\necho segmentation fault\nexit 139\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	l := u.startLoad(u.addr)
	for _, daemon := range upgradeOrder {
		u.choose(t, "broken")
		u.kill(daemon)
		u.do("start " + daemon) // and ends at once
		l.progress("while " + daemon + " crashes at start")
		u.newFlows(u.addr, "while "+daemon+" crashes at start")
		u.choose(t, "this")
		u.startWhenDead(daemon)
		u.together()
	}
	l.finish()
	u.allServe()
}

// startWhenDead starts a daemon once the one before has ended.
func (u *upgrade) startWhenDead(daemon string) {
	u.t.Helper()
	nstest.Wait(u.t, u.look(), func() error { return u.try("start " + daemon) })
}

func TestUpgradeToAVersionThatIsUnknownIsRefusedWithTheCure(t *testing.T) {
	u := theUpgrade(t, "this", "open")
	l := u.startLoad(u.addr)
	for _, c := range []struct{ daemon, speaks, cure string }{
		{"ctl/controld", "3-4", "upgrade this controller"},
		{"s1/hostd", "7", "host s1 speaks version 7 of the agent protocol, this controller 1 to 2: upgrade this controller"},
		{"r2/routerd", "7-9", "router r2 speaks version 7 to 9 of the agent protocol, this controller 1 to 2: upgrade this controller"},
	} {
		if c.daemon == "ctl/controld" {
			c.cure = "host c1 speaks version 1 to 2 of the agent protocol, this controller 3 to 4: upgrade host c1, or go back with this controller"
		}
		u.pretend(c.daemon, "agent="+c.speaks)
		u.logged("ctl/controld", c.cure)
		l.progress("while " + c.daemon + " is of another version")
		u.newFlows(u.addr, "while "+c.daemon+" is of another version")
		u.replace(c.daemon, "this")
		u.together()
	}
	l.finish()
}

func TestUpgradeOfTheStoreIsNotTakenBackUnawares(t *testing.T) {
	u := theUpgrade(t, "this", "open")
	l := u.startLoad(u.addr)
	u.pretend("ctl/controld", "schema=0-9")
	u.together()
	u.replace("ctl/controld", "this")
	u.logged("ctl/controld", "is of schema 9, and this version reads 0 to 1")
	l.progress("while the controller refuses the store")
	u.newFlows(u.addr, "while the controller refuses the store")
	u.startPretending("ctl/controld", "schema=0-9")
	u.together()
	l.finish()
}

// pretend replaces a daemon by one that says that it is of another version.
func (u *upgrade) pretend(daemon, what string) {
	u.t.Helper()
	u.kill(daemon)
	u.startPretending(daemon, what)
}

// startPretending leaves the path at the script: the shell opens it some time after the daemon counts as started.
func (u *upgrade) startPretending(daemon, what string) {
	u.t.Helper()
	script := fmt.Sprintf("#!/bin/sh\nexport %s=%s\nexec %s \"$@\"\n", versions.Pretend, what, u.versions["this"])
	u.versions["pretending"] = u.path + ".pretending-" + strings.ReplaceAll(daemon+what, "/", "-")
	if err := os.WriteFile(u.versions["pretending"], []byte(script), 0o755); err != nil {
		u.t.Fatal(err)
	}
	u.choose(u.t, "pretending")
	u.startWhenDead(daemon)
}

// logged waits until a daemon's log has the words.
func (u *upgrade) logged(daemon, words string) {
	u.t.Helper()
	node, name, _ := strings.Cut(daemon, "/")
	nstest.Wait(u.t, u.look(), func() error {
		text, err := os.ReadFile(u.lab.LogPath(node, name))
		if err == nil && !strings.Contains(string(text), words) {
			err = fmt.Errorf("the log of %s does not say %q", daemon, words)
		}
		return err
	})
}
