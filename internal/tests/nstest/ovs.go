package nstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"scaffold.dev/scaffold/internal/openflow/ovs"
)

// An OVS is an Open vSwitch of a test's own, all in user space, without a system service: a database, a
// daemon and a directory that end with the test. Its ports are those of its namespace.
type OVS struct {
	Dir string // OVS_RUNDIR: a controller at unix:Dir/NAME may be given to a bridge
	ns  *NS
	its ovs.Instance
}

// NewOVS starts one in the namespace.
func (n *NS) NewOVS(t testing.TB) *OVS {
	t.Helper()
	for _, program := range []string{"ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl"} {
		Program(t, program, ovs.Package)
	}
	dir, err := os.MkdirTemp(place(), "ovs") // short: a socket's name has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	o := &OVS{Dir: dir, ns: n, its: ovs.Instance{Dir: dir}}
	o.run(t, o.its.Create)
	o.start(t, o.its.Database)
	Wait(t, "the output of ovsdb-server", o.its.Answers)
	o.run(t, func() (*exec.Cmd, error) { return o.its.Configure(ovs.Config{}) })
	o.start(t, o.its.Daemon)
	return o
}

// place is for files that go when the test binary does: Main's own /run, or else that of temporary files.
func place() string {
	if os.Getenv(childEnv) == ready {
		return "/run"
	}
	return ""
}

func (o *OVS) run(t testing.TB, prepare func() (*exec.Cmd, error)) string {
	t.Helper()
	cmd, err := prepare()
	if err != nil {
		t.Fatal(err)
	}
	out, err := TryBy(o.ns.starter, cmd)
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return out
}

func (o *OVS) start(t testing.TB, prepare func() (*exec.Cmd, error)) *Proc {
	t.Helper()
	cmd, err := prepare()
	if err != nil {
		t.Fatal(err)
	}
	return o.ns.StartCmd(t, cmd)
}

// Vsctl runs ovs-vsctl, which waits until what it changed is done.
func (o *OVS) Vsctl(t testing.TB, args ...string) string {
	t.Helper()
	return o.run(t, func() (*exec.Cmd, error) { return o.its.Vsctl(args...) })
}

// Ofctl runs ovs-ofctl.
func (o *OVS) Ofctl(t testing.TB, args ...string) string {
	t.Helper()
	return o.run(t, func() (*exec.Cmd, error) { return o.its.Command("ovs-ofctl", args...) })
}

// Bridge adds a bridge that does nothing without a controller and speaks those versions, as
// "OpenFlow13,OpenFlow15". It returns the socket at which it listens for controllers.
func (o *OVS) Bridge(t testing.TB, name, protocols string) string {
	t.Helper()
	o.Vsctl(t, "add-br", name, "--", "set", "bridge", name, "datapath_type=netdev", "fail_mode=secure",
		"protocols="+protocols, "other-config:disable-in-band=true")
	return filepath.Join(o.Dir, name+".mgmt")
}
