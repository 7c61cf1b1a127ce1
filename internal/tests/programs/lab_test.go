package programs

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/lab"
	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// shared is the one lab of all tests: the first that needs it brings it up.
var shared = struct {
	once  sync.Once
	lab   *lab.Lab
	admin apiv1connect.AdminClient
	err   error
}{}

// network is the lab, from the tests' point of view.
type network struct {
	lab   *lab.Lab
	admin apiv1connect.AdminClient
}

func theNetwork(t *testing.T) network {
	t.Helper()
	nstest.Root(t)
	shared.once.Do(func() { shared.lab, shared.admin, shared.err = bringUp() })
	if shared.err != nil {
		t.Fatalf("no lab to run in: %v", shared.err)
	}
	return network{shared.lab, shared.admin}
}

func bringUp() (*lab.Lab, apiv1connect.AdminClient, error) {
	f, err := file.Load("testdata/programs.yaml")
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

// create makes a service that stays for the tests after this one: a name that is removed and made again
// has another address, and resolvers may remember the old one for some seconds.
func (n network) create(t *testing.T, name string) (host string, addr netip.Addr) {
	t.Helper()
	_, err := n.admin.CreateService(t.Context(), connect.NewRequest(&apiv1.CreateServiceRequest{Name: name}))
	if err != nil && connect.CodeOf(err) != connect.CodeAlreadyExists {
		t.Fatalf("create service %s: %v", name, err)
	}
	var r *connect.Response[apiv1.Service]
	nstest.Wait(t, "`scaffold service show "+name+"` in the lab: servers of the test before", func() error {
		r, err = n.admin.GetService(t.Context(), connect.NewRequest(&apiv1.GetServiceRequest{Name: name}))
		if err == nil && len(r.Msg.Instances) > 0 {
			err = fmt.Errorf("service %s has instances before it has servers: %v", name, r.Msg.Instances)
		}
		return err
	})
	addr, err = netip.ParseAddr(r.Msg.Address)
	if err != nil {
		t.Fatalf("service %s has the address %q: %v", name, r.Msg.Address, err)
	}
	return name + "." + n.lab.File.Network.Domain, addr
}

// start starts a server on a host. With a service it goes through `scaffold run`: its wildcard binds
// become binds of that service's address.
func (n network) start(t *testing.T, host, service string, argv []string) *nstest.Proc {
	t.Helper()
	if service != "" {
		argv = append([]string{self, "run", "--service", service, "--"}, argv...)
	}
	return nstest.StartBy(t, host, n.at(host), exec.Command(argv[0], argv[1:]...))
}

// run runs a program on a host to its end.
func (n network) run(host string, argv []string) (out string, err error) {
	return nstest.TryBy(n.at(host), exec.Command(argv[0], argv[1:]...))
}

func (n network) at(host string) nstest.Starter {
	return func(cmd *exec.Cmd) error { return n.lab.Start(host, cmd) }
}

// serving waits until as many instances of a service get traffic, at every router.
func (n network) serving(t *testing.T, service, proto string, port, instances int) {
	t.Helper()
	look := fmt.Sprintf("the servers' output below, %s, %s", n.lab.LogPath("s1", "hostd"), n.lab.LogPath("ctl", "controld"))
	nstest.Wait(t, look, func() error {
		r, err := n.admin.GetService(t.Context(), connect.NewRequest(&apiv1.GetServiceRequest{Name: service}))
		if err != nil {
			return err
		}
		found := 0
		for _, i := range r.Msg.Instances {
			if i.Proto == proto && int(i.Port) == port && i.State == "serving" && i.Effective > 0 {
				found++
			}
		}
		if found != instances {
			return fmt.Errorf("%s: %d instances serve %s port %d, want %d; it has %v", service, found, proto, port, instances, r.Msg.Instances)
		}
		return n.applied(t.Context())
	})
}

// applied is an error while a service router has not applied the rules of this moment.
func (n network) applied(ctx context.Context) error {
	status, err := n.admin.GetStatus(ctx, connect.NewRequest(&apiv1.GetStatusRequest{}))
	if err != nil {
		return err
	}
	routers, err := n.admin.ListRouters(ctx, connect.NewRequest(&apiv1.ListRoutersRequest{}))
	if err != nil {
		return err
	}
	for _, r := range routers.Msg.Routers {
		if r.Service && !r.Current && r.Generation < status.Msg.Generation { // the last change may be none of its rules
			return fmt.Errorf("router %s has applied rules %d, and not all", r.Name, r.Generation)
		}
	}
	return nil
}

// daemonLogs is the end of what the daemons wrote, for messages.
func (n network) daemonLogs() (text string) {
	for _, d := range [][2]string{{"c1", "hostd"}, {"s1", "hostd"}, {"s2", "hostd"}, {"sr", "routerd"}, {"ctl", "controld"}} {
		path := n.lab.LogPath(d[0], d[1])
		b, _ := os.ReadFile(path)
		text += fmt.Sprintf("--- %s\n%s", path, tail(string(b)))
	}
	return text
}
