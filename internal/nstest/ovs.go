package nstest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// An OVS is an Open vSwitch of a test's own, all in user space, without a system service: a database, a
// daemon and a directory that end with the test. Its ports are those of its namespace.
type OVS struct {
	Dir string // OVS_RUNDIR: a controller at unix:Dir/NAME may be given to a bridge
	ns  *NS
	db  string
}

const ovsSchema = "/usr/share/openvswitch/vswitch.ovsschema"

// NewOVS starts one in the namespace.
func (n *NS) NewOVS(t testing.TB) *OVS {
	t.Helper()
	for _, program := range []string{"ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl"} {
		Program(t, program, "openvswitch-switch")
	}
	dir, err := os.MkdirTemp(place(), "ovs") // short: a socket's name has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	o := &OVS{Dir: dir, ns: n, db: "unix:" + filepath.Join(dir, "db.sock")}
	o.run(t, "ovsdb-tool", "create", filepath.Join(dir, "conf.db"), ovsSchema)
	o.start(t, "ovsdb-server", filepath.Join(dir, "conf.db"), "--remote=p"+o.db, "--unixctl="+filepath.Join(dir, "ovsdb.ctl"))
	Wait(t, "the output of ovsdb-server", func() error {
		c, err := net.Dial("unix", filepath.Join(dir, "db.sock"))
		if err == nil {
			c.Close()
		}
		return err
	})
	o.Vsctl(t, "--no-wait", "init")
	o.start(t, "ovs-vswitchd", o.db, "--unixctl="+filepath.Join(dir, "vswitchd.ctl"))
	return o
}

// place is for files that go when the test binary does: Main's own /run, or else that of temporary files.
func place() string {
	if os.Getenv(childEnv) == ready {
		return "/run"
	}
	return ""
}

func (o *OVS) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+o.Dir, "OVS_LOGDIR="+o.Dir, "OVS_DBDIR="+o.Dir)
	return cmd
}

func (o *OVS) run(t testing.TB, program string, args ...string) string {
	t.Helper()
	out, err := TryBy(o.ns.starter, o.command(program, args...))
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return out
}

func (o *OVS) start(t testing.TB, program string, args ...string) *Proc {
	t.Helper()
	return o.ns.StartCmd(t, o.command(program, args...))
}

// Vsctl runs ovs-vsctl, which waits until what it changed is done, for at most Deadline.
func (o *OVS) Vsctl(t testing.TB, args ...string) string {
	t.Helper()
	timeout := fmt.Sprintf("--timeout=%d", int(Deadline.Seconds()))
	return o.run(t, "ovs-vsctl", append([]string{timeout, "--db=" + o.db}, args...)...)
}

// Ofctl runs ovs-ofctl.
func (o *OVS) Ofctl(t testing.TB, args ...string) string {
	t.Helper()
	return o.run(t, "ovs-ofctl", args...)
}

// Bridge adds a bridge that does nothing without a controller and speaks those versions, as
// "OpenFlow13,OpenFlow15". It returns the socket at which it listens for controllers.
func (o *OVS) Bridge(t testing.TB, name, protocols string) string {
	t.Helper()
	o.Vsctl(t, "add-br", name, "--", "set", "bridge", name, "datapath_type=netdev", "fail_mode=secure",
		"protocols="+protocols, "other-config:disable-in-band=true")
	return filepath.Join(o.Dir, name+".mgmt")
}
