package resume

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/nstest"
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
}

// serve creates a service and starts its program on the hosts.
func serve(t *testing.T, name, program, port string, size int, policy *apiv1.Policy, hosts []string, args ...string) *service {
	t.Helper()
	nstest.Root(t)
	shared.once.Do(func() { shared.err = bringUp() })
	if shared.err != nil {
		t.Fatalf("no lab to run in: %v", shared.err)
	}
	s := &service{t: t, name: name, dir: t.TempDir(), blob: make([]byte, size), program: program, port: port, args: args, servers: map[string]*nstest.Proc{}}
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
		if n != instances || len(r.Msg.Pending) > 0 {
			return fmt.Errorf("%d instances serve %s, want %d: %v", n, s.name, instances, r.Msg.Instances)
		}
		return nil
	})
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
func (s *service) arrived(path string, size int64) {
	s.t.Helper()
	nstest.Wait(s.t, "the logs in "+shared.lab.Dir(), func() error {
		if info, err := os.Stat(path); err != nil || info.Size() < size {
			return fmt.Errorf("%s: %v, want %d bytes", path, info, size)
		}
		return nil
	})
}

// busy is the host whose instance has the client's flow.
func (s *service) busy() string {
	s.t.Helper()
	found := ""
	nstest.Wait(s.t, "the logs in "+shared.lab.Dir(), func() error {
		for host := range s.servers {
			out, err := nstest.TryBy(at(host), exec.Command("/proc/self/exe", "flow", "ls", "--service", s.name, "-o", "json"))
			if err == nil && strings.Contains(out, `"state": "bound"`) {
				found = host
				return nil
			}
		}
		return fmt.Errorf("no host has a flow of %s", s.name)
	})
	return found
}

// resumed is how many flows went on at any of the instances that live.
func (s *service) resumed() (n int) {
	for _, p := range s.servers {
		n += strings.Count(p.Output(), "goes on here")
	}
	return n
}

func (s *service) explain() {
	if !s.t.Failed() {
		return
	}
	for host, p := range s.servers {
		s.t.Logf("%s on %s printed:\n%s", s.program, host, p.Output())
	}
	for _, node := range []string{"c1", "s1", "s2", "s3"} {
		text, _ := os.ReadFile(shared.lab.LogPath(node, "hostd"))
		lines := strings.Split(string(text), "\n")
		s.t.Logf("%s ends:\n%s", shared.lab.LogPath(node, "hostd"), strings.Join(lines[max(0, len(lines)-12):], "\n"))
	}
}
