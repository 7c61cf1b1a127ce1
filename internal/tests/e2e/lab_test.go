package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// shared is the one lab of all tests: the first that needs it brings it up.
var shared struct {
	once  sync.Once
	lab   *lab.Lab
	admin apiv1connect.AdminClient
	err   error
}

// A network is the lab, as one test sees it.
type network struct {
	t     *testing.T
	lab   *lab.Lab
	admin apiv1connect.AdminClient
	nodes map[string]*nstest.NS
}

func theNetwork(t *testing.T) *network {
	t.Helper()
	nstest.Root(t)
	shared.once.Do(func() { shared.lab, shared.admin, shared.err = bringUp() })
	if shared.err != nil {
		t.Fatalf("no lab to run in: %v", shared.err)
	}
	n := &network{t, shared.lab, shared.admin, map[string]*nstest.NS{}}
	t.Cleanup(n.explain)
	return n
}

func bringUp() (*lab.Lab, apiv1connect.AdminClient, error) {
	f, err := file.Load("testdata/e2e.yaml")
	if err != nil {
		return nil, nil, err
	}
	f.Name = nstest.LabName()
	l, err := lab.Up(context.Background(), f, lab.Options{})
	if err != nil {
		return nil, nil, err
	}
	admin, err := l.Admin()
	return l, admin, err
}

// takeDown removes the lab and everything that runs in it.
func takeDown() error {
	if shared.lab == nil {
		return nil
	}
	return lab.Down(context.Background(), shared.lab.File.Name, lab.Options{})
}

// linux reports whether the network's routers are namespaces in the kernel.
func (n *network) linux() bool { return n.lab.File.Network.Plane == file.LinuxPlane }

// switched says whether the routers are OpenFlow switches: what passes through them no kernel sees, and no router
// tells a sender that its packet is too big.
func (n *network) switched() bool { return n.lab.File.Network.Plane == file.OpenFlowPlane }

// at is the namespace of a node: sockets that are opened there belong to that host.
func (n *network) at(node string) *nstest.NS {
	n.t.Helper()
	if n.nodes[node] == nil {
		n.nodes[node] = nstest.Enter(n.t, node, "/run/netns/"+n.lab.Plan().Node(node).Netns)
	}
	return n.nodes[node]
}

// do carries out an action of the lab, as a timeline writes it.
func (n *network) do(text string) {
	n.t.Helper()
	a, err := file.ParseAction(text)
	if err == nil {
		err = n.lab.Do(n.t.Context(), a)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// kill kills a daemon with SIGKILL; a test that fails before it starts it again must not spoil others.
func (n *network) kill(daemon string) {
	n.t.Helper()
	n.do("kill " + daemon)
	n.t.Cleanup(func() {
		if a, _ := file.ParseAction("start " + daemon); n.t.Failed() {
			n.lab.Do(context.Background(), a)
		}
	})
}

// start starts a program on a host; the test's end kills it.
func (n *network) start(host string, argv ...string) *nstest.Proc {
	n.t.Helper()
	return nstest.StartBy(n.t, host, n.starter(host), exec.Command(argv[0], argv[1:]...))
}

// run runs a program on a host to its end.
func (n *network) run(host string, argv ...string) (out string, err error) {
	return nstest.TryBy(n.starter(host), exec.Command(argv[0], argv[1:]...))
}

func (n *network) starter(host string) nstest.Starter {
	return func(cmd *exec.Cmd) error { return n.lab.Start(host, cmd) }
}

// create makes a service, with the policy or the default one, that stays as long as the lab: tests use
// names of their own.
func (n *network) create(name string, policy ...*apiv1.Policy) netip.Addr {
	n.t.Helper()
	req := &apiv1.CreateServiceRequest{Name: name}
	if len(policy) > 0 {
		req.Policy = policy[0]
	}
	_, err := n.admin.CreateService(n.t.Context(), connect.NewRequest(req))
	if err != nil && connect.CodeOf(err) != connect.CodeAlreadyExists { // by an earlier round of this test
		n.t.Fatalf("create service %s: %v", name, err)
	}
	s, err := n.service(name)
	if err != nil {
		n.t.Fatal(err)
	}
	return netip.MustParseAddr(s.Address)
}

// local asks the daemon of a host.
func (n *network) local(host string) apiv1connect.LocalClient {
	n.t.Helper()
	return n.localAt("unix:" + n.lab.Socket(host))
}

func (n *network) localAt(endpoint string) apiv1connect.LocalClient {
	n.t.Helper()
	client, base, err := api.Dial(endpoint)
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(client.CloseIdleConnections)
	return apiv1connect.NewLocalClient(client, base)
}

// serving waits until this many instances of a service get traffic on the port, at every router.
func (n *network) serving(service, proto string, port, instances int) {
	n.t.Helper()
	nstest.Wait(n.t, n.look(), func() error {
		s, err := n.service(service)
		if err != nil {
			return err
		}
		found := 0
		for _, i := range s.Instances {
			if i.Proto == proto && int(i.Port) == port && i.State == "serving" && i.Effective > 0 {
				found++
			}
		}
		if found != instances {
			return fmt.Errorf("%s: %d instances serve %s port %d, want %d; it has %v", service, found, proto, port, instances, s.Instances)
		}
		return n.applied()
	})
}

func (n *network) service(name string) (*apiv1.Service, error) {
	r, err := n.admin.GetService(n.t.Context(), connect.NewRequest(&apiv1.GetServiceRequest{Name: name}))
	if err != nil {
		return nil, fmt.Errorf("service %s: %w", name, err)
	}
	return r.Msg, nil
}

// applied is an error while a service router has not applied the rules of this moment.
func (n *network) applied() error {
	status, err := n.admin.GetStatus(n.t.Context(), connect.NewRequest(&apiv1.GetStatusRequest{}))
	if err != nil {
		return err
	}
	routers, err := n.admin.ListRouters(n.t.Context(), connect.NewRequest(&apiv1.ListRoutersRequest{}))
	if err != nil {
		return err
	}
	if status.Msg.Settling {
		return errors.New("the controller sends no rules yet")
	}
	for _, r := range routers.Msg.Routers {
		if r.Service && !r.Current && r.Generation < status.Msg.Generation { // the last change may be none of its rules
			return fmt.Errorf("router %s has applied rules %d, and not all", r.Name, r.Generation)
		}
	}
	return nil
}

// look is where the cause of a failure is to be found while the lab is up.
func (n *network) look() string {
	return fmt.Sprintf("%s and the other logs in %s; `scaffold service ls`, `scaffold flow ls` there", n.lab.LogPath("c1", "hostd"), n.lab.Dir())
}

// explain shows, when the test has failed, the ends of what the daemons wrote.
func (n *network) explain() {
	if !n.t.Failed() {
		return
	}
	for _, d := range [][2]string{{"c1", "hostd"}, {"s1", "hostd"}, {"s2", "hostd"}, {"r1", "routerd"}, {"ra", "routerd"}, {"rs", "routerd"}, {"ctl", "controld"}, {"k1", "controld"}, {"k2", "controld"}, {"k3", "controld"}} {
		if n.lab.Plan().Node(d[0]) == nil {
			continue // of another lab
		}
		text, _ := os.ReadFile(n.lab.LogPath(d[0], d[1]))
		lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool { return strings.Contains(line, " subject="+churned) })
		n.t.Logf("%s ends:\n%s", n.lab.LogPath(d[0], d[1]), strings.Join(lines[max(0, len(lines)-25):], "\n"))
	}
}
