package resume

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A service is a name whose instances serve one file, "blob", and share a record.
type service struct {
	t       *testing.T
	name    string
	dir     string // of the file, the record, and what clients get
	blob    []byte
	program string
	port    string
	args    []string
	servers map[string]*nstest.Proc // by host
	resumed map[string]int          // flows that went on, by host
	stable  string                  // of the flow that busy found last
}

// serve creates a service and starts its program on the hosts.
func serve(t *testing.T, name, program, port string, size int, policy *apiv1.Policy, hosts []string, args ...string) *service {
	t.Helper()
	nstest.Root(t)
	shared.once.Do(func() { shared.err = bringUp() })
	if shared.err != nil {
		t.Fatalf("no lab to run in: %v", shared.err)
	}
	s := &service{t: t, name: name, dir: t.TempDir(), blob: make([]byte, size), program: program, port: port, args: args, servers: map[string]*nstest.Proc{}, resumed: map[string]int{}}
	rand.NewChaCha8([32]byte{3}).Read(s.blob)
	if err := os.WriteFile(filepath.Join(s.dir, "blob"), s.blob, 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := shared.admin.CreateService(t.Context(), connect.NewRequest(&apiv1.CreateServiceRequest{Name: name, Policy: policy}))
	if err != nil && connect.CodeOf(err) != connect.CodeAlreadyExists { // by an earlier round
		t.Fatal(err)
	}
	t.Cleanup(s.explain)
	for _, host := range hosts {
		s.start(host)
	}
	s.serving(len(hosts))
	return s
}

func (s *service) start(host string) {
	s.t.Helper()
	argv := append([]string{"--service", s.name + ":" + s.port, "--root", s.dir, "--record", filepath.Join(s.dir, "record")}, s.args...)
	s.servers[host] = nstest.StartBy(s.t, host, at(host), exec.Command(filepath.Join(shared.bin, s.program), argv...))
}

// end kills an instance: its end is its withdrawal.
func (s *service) end(host string) {
	s.t.Helper()
	s.servers[host].Kill()
	delete(s.servers, host)
}

func at(host string) nstest.Starter {
	return func(cmd *exec.Cmd) error { return shared.lab.Start(host, cmd) }
}

// serving waits until so many instances get new flows.
func (s *service) serving(instances int) {
	s.t.Helper()
	nstest.Wait(s.t, "the logs in "+shared.lab.Dir(), func() error {
		r, err := shared.admin.GetService(s.t.Context(), connect.NewRequest(&apiv1.GetServiceRequest{Name: s.name}))
		if err != nil {
			return err
		}
		n := 0
		for _, i := range r.Msg.Instances {
			if i.State == "serving" && i.Effective > 0 {
				n++
			}
		}
		if n != instances {
			return fmt.Errorf("%d instances serve %s, want %d: %v", n, s.name, instances, r.Msg.Instances)
		}
		return applied(s.t.Context())
	})
}

// applied is an error while the router has not applied the rules of this moment.
func applied(ctx context.Context) error {
	status, err := shared.admin.GetStatus(ctx, connect.NewRequest(&apiv1.GetStatusRequest{}))
	if err != nil {
		return err
	}
	all, err := shared.admin.ListRouters(ctx, connect.NewRequest(&apiv1.ListRoutersRequest{}))
	if err != nil {
		return err
	}
	for _, r := range all.Msg.Routers {
		if !r.Current && r.Generation < status.Msg.Generation { // the last change may be none of its rules
			return fmt.Errorf("router %s has applied rules %d, and not all", r.Name, r.Generation)
		}
	}
	return nil
}

// client starts a program at the client that gets the blob into the file that it returns.
func (s *service) client(argv ...string) (*nstest.Proc, string) {
	s.t.Helper()
	got := filepath.Join(s.t.TempDir(), "got")
	for i := range argv {
		argv[i] = strings.ReplaceAll(argv[i], "GOT", got)
	}
	return nstest.StartBy(s.t, "c1", at("c1"), exec.Command(argv[0], argv[1:]...)), got
}

// whole waits for a client's end: it must succeed, and the file be what is served.
func (s *service) whole(p *nstest.Proc, path string) {
	s.t.Helper()
	err := p.Wait()
	got, _ := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, s.blob) {
		s.t.Errorf("the client ended with %v and has %d bytes, want %d; it printed:\n%s", err, len(got), len(s.blob), p.Output())
	}
}

// arrived waits until a client has written so much of the file.
func (s *service) arrived(p *nstest.Proc, path string, size int64) {
	s.t.Helper()
	nstest.Wait(s.t, "the logs in "+shared.lab.Dir(), func() error {
		select {
		case <-p.Done():
			s.t.Fatalf("the client ended before %d bytes had arrived: %v\n%s", size, p.Wait(), p.Output())
		default:
		}
		if info, err := os.Stat(path); err != nil || info.Size() < size {
			return fmt.Errorf("%s has not %d bytes yet (%v)", path, size, err)
		}
		return nil
	})
}

// busy is the host whose instance has the client's flow.
func (s *service) busy() (host string) {
	s.t.Helper()
	nstest.Wait(s.t, "the logs in "+shared.lab.Dir(), func() error {
		for host = range s.servers {
			flows, err := local(s.t, host).ListFlows(s.t.Context(), connect.NewRequest(&apiv1.ListFlowsRequest{Service: s.name}))
			if err != nil {
				return err
			}
			for _, f := range flows.Msg.Flows {
				if f.State == "bound" {
					s.stable = f.Stable
					return nil
				}
			}
		}
		return fmt.Errorf("no host has a flow of %s", s.name)
	})
	return host
}

// local asks the daemon of a host.
func local(t *testing.T, host string) apiv1connect.LocalClient {
	t.Helper()
	client, base, err := api.Dial("unix:" + shared.lab.Socket(host))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return apiv1connect.NewLocalClient(client, base)
}

// history is what the client's host tells of the flows that it has had, for messages.
func (s *service) history() (text string) {
	out, err := exec.Command("/proc/self/exe", "explain", s.stable, "--api", "unix:"+shared.lab.Socket("c1")).CombinedOutput()
	return fmt.Sprintf("scaffold explain: %v\n%s", err, out)
}

// goesOn waits until one of the instances that live says that it has the client's flow.
func (s *service) goesOn(p *nstest.Proc) {
	s.t.Helper()
	nstest.Wait(s.t, "the logs in "+shared.lab.Dir(), func() error {
		ended := false
		select {
		case <-p.Done():
			ended = true
		default:
		}
		for host, server := range s.servers {
			if n := strings.Count(server.Output(), "goes on here"); n > s.resumed[host] {
				s.resumed[host] = n
				return nil
			}
		}
		if ended {
			s.t.Fatalf("the client ended, and its flow went on nowhere: %v\n%s", p.Wait(), p.Output())
		}
		return errors.New("no instance has gone on with the flow")
	})
}

func (s *service) explain() {
	if !s.t.Failed() {
		return
	}
	if s.stable != "" {
		s.t.Log(s.history())
	}
	for host, p := range s.servers {
		s.t.Logf("%s on %s printed:\n%s", s.program, host, p.Output())
	}
	for _, node := range []string{"c1", "s1", "s2", "s3"} {
		text, _ := os.ReadFile(shared.lab.LogPath(node, "hostd"))
		lines := strings.Split(string(text), "\n")
		s.t.Logf("%s ends:\n%s", shared.lab.LogPath(node, "hostd"), strings.Join(lines[max(0, len(lines)-5):], "\n"))
	}
}
