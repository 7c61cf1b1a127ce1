package badinput

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A site is a network whose daemons run as an operator would run them, without a lab: a controller, a
// service router and hosts on it, each in a namespace.
type site struct {
	t      *testing.T
	dir    string
	ctl    *nstest.NS
	router *nstest.NS
	hosts  map[string]*nstest.NS
}

const (
	controller = "http://[fd00:99::1]:23728"
	management = "fd00:99::"
)

func newSite(t *testing.T, hosts ...string) *site {
	t.Helper()
	nstest.Root(t)
	dir, err := os.MkdirTemp("", "bad") // short: a socket's path has 107 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &site{t: t, dir: dir, ctl: nstest.New(t, "ctl"), router: nstest.New(t, "r1"), hosts: map[string]*nstest.NS{}}
	nstest.Veth(t, s.ctl, "mgmt", s.router, "mgmt")
	s.ctl.Addr(t, "mgmt", management+"1/64")
	s.router.Addr(t, "mgmt", management+"2/64")
	for _, name := range hosts {
		s.hosts[name] = nstest.New(t, name)
		s.plug(name)
	}
	return s
}

// plug connects a host to the router.
func (s *site) plug(host string) {
	s.t.Helper()
	nstest.Veth(s.t, s.hosts[host], "eth0", s.router, "to-"+host)
}

// unplug removes the wire, at both ends.
func (s *site) unplug(host string) {
	s.t.Helper()
	s.router.Run(s.t, "ip", "link", "del", "to-"+host)
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) controld(more ...string) *nstest.Proc {
	s.t.Helper()
	args := []string{self, "controld", "--trust", "open", "--listen", strings.TrimPrefix(controller, "http://"), "--socket", s.path("c.sock"),
		"--data", s.path("data"), "--service", "web"}
	return s.start(s.ctl, append(args, more...))
}

func (s *site) routerd(more ...string) *nstest.Proc {
	s.t.Helper()
	args := []string{self, "routerd", "--name", "r1", "--service", "--controller", controller, "--mgmt", "mgmt", "--socket", s.path("r.sock")}
	return s.start(s.router, append(args, more...))
}

// hostd starts the daemon of a host; more comes last, so that it may say otherwise.
func (s *site) hostd(host string, more ...string) *nstest.Proc {
	s.t.Helper()
	args := []string{self, "hostd", "--name", host, "--uplink", "eth0", "--socket", s.path(host + ".sock"), "--state", s.path(host)}
	return s.start(s.hosts[host], append(args, more...))
}

// start runs a daemon that is asked to leave at the end of the test, so that the next finds nothing of it.
func (s *site) start(n *nstest.NS, args []string) *nstest.Proc {
	s.t.Helper()
	p := n.Start(s.t, args...)
	s.t.Cleanup(func() {
		p.Signal(syscall.SIGTERM)
		p.Wait() // its end is not what is tested
	})
	return p
}

// ask runs a command against the site's controller.
func (s *site) ask(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	return scaffold(s.t, append(args, "--api", "unix:"+s.path("c.sock"))...)
}

// until waits until the command's output holds text.
func (s *site) until(text string, args ...string) {
	s.t.Helper()
	nstest.Wait(s.t, "scaffold "+strings.Join(args, " "), func() error {
		if out, errs, _ := s.ask(args...); !strings.Contains(out, text) {
			return fmt.Errorf("no %q in\n%s%s", text, out, errs)
		}
		return nil
	})
}

// lines counts the lines of a daemon's log that hold text.
func lines(p *nstest.Proc, text string) (n int) {
	for line := range strings.Lines(p.Output()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// ticks is the processor time of a process in 1/100 s.
func ticks(t *testing.T, p *nstest.Proc) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return user + system
}

// kernel is all that the daemons change in a namespace: addresses, routes, rules, queues, filters,
// neighbours and switches.
func kernel(t *testing.T, n *nstest.NS) string {
	t.Helper()
	script := `ip -6 addr | grep -v valid_lft; ip -6 rule; ip -6 route show table all; ip -6 neigh show nud permanent; tc qdisc;
		for d in $(ls /sys/class/net); do tc filter show dev $d ingress; tc filter show dev $d egress; done 2>/dev/null
		cd /proc/sys/net; grep -r . ipv6/ip_nonlocal_bind ipv6/conf/*/forwarding ipv6/conf/*/accept_ra ipv4/ip_forward`
	cmd := exec.Command("unshare", "-m", "sh", "-c", "mount -t sysfs sys /sys; "+script)
	out, err := nstest.TryBy(func(c *exec.Cmd) (err error) { n.Do(func() { err = c.Start() }); return err }, cmd)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}
