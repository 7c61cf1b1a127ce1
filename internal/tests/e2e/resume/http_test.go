package resume

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// size is several times what all buffers on the way hold: a server that dies has not sent all of it.
const size = 40 << 20

// download is a client that takes about four seconds.
func (s *service) download() (*nstest.Proc, string) {
	return s.client("curl", "-sS", "--fail", "--limit-rate", "10M", "-o", "GOT", "http://"+s.name+".svc/blob")
}

// lose lets the instance that has the client's flow end while the client is held, so that it has not all it
// wants, and waits until another one goes on.
func (s *service) lose(client *nstest.Proc, end func(host string)) (host string) {
	s.t.Helper()
	host = s.busy()
	client.Signal(syscall.SIGSTOP)
	end(host)
	client.Signal(syscall.SIGCONT)
	s.goesOn(client)
	return host
}

func TestADownloadSurvivesItsServersTwice(t *testing.T) {
	safety.Test(t, safety.Bytes)
	s := serve(t, "survive", "httpd", "80", size, &apiv1.Policy{Failover: "continue"}, []string{"s1", "s2", "s3"})
	p, got := s.download()
	s.arrived(p, got, size/16)
	first := s.lose(p, s.end)
	s.lose(p, s.end)
	s.whole(p, got)
	s.replays(first)
}

// A client in a container, behind its host's daemon, notices as little.
func TestADownloadInAGuestSurvivesItsServer(t *testing.T) {
	safety.Test(t, safety.Bytes)
	s := serve(t, "boxed", "httpd", "80", size, &apiv1.Policy{Failover: "continue"}, []string{"s1", "s2"})
	box := nstest.New(t, "box")
	scaffold := func(argv ...string) {
		t.Helper()
		if out, err := nstest.TryBy(at("c1"), exec.Command("/proc/self/exe", append([]string{"guest"}, argv...)...)); err != nil {
			t.Fatalf("scaffold guest %v: %v %s", argv, err, out)
		}
	}
	scaffold("add", "box", "--netns", fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), box.Fd()))
	t.Cleanup(func() { scaffold("rm", "box") })
	got, conf := filepath.Join(s.dir, "got-box"), filepath.Join(s.dir, "resolv.conf")
	if err := os.WriteFile(conf, []byte("nameserver ::1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := box.Start(t, "unshare", "-m", "sh", "-c",
		"mount --bind "+conf+" /etc/resolv.conf && exec curl -sS --fail --limit-rate 10M -o "+got+" http://boxed.svc/blob")
	s.arrived(p, got, size/16)
	s.lose(p, s.end)
	s.whole(p, got)
}

func TestADownloadGoesOnWhenItIsShed(t *testing.T) {
	for name, shed := range map[string]func(s *service, host string){
		"by the program": func(s *service, host string) { s.servers[host].Signal(syscall.SIGUSR1) },
		"by its end":     func(s *service, host string) { s.servers[host].Signal(syscall.SIGTERM) },
		"by a drain":     func(s *service, host string) { s.drain(host, false) },
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, "shed", "httpd", "80", size, &apiv1.Policy{Failover: "continue"}, []string{"s1", "s2"})
			p, got := s.download()
			s.arrived(p, got, size/16)
			host := s.lose(p, func(host string) { shed(s, host) })
			s.whole(p, got)
			s.drain(host, true)
		})
	}
}

// TestWithoutAnInstanceThatResumesTheClientIsTold: half a file never looks whole.
func TestWithoutAnInstanceThatResumesTheClientIsTold(t *testing.T) {
	s := serve(t, "alone", "httpd", "80", size, &apiv1.Policy{Failover: "continue"}, []string{"s1"})
	p, got := s.download()
	s.arrived(p, got, size/16)
	s.end("s1")
	if err := p.Wait(); err == nil {
		t.Errorf("curl takes half a file for whole:\n%s", p.Output())
	}
}

// drain sheds all that an instance has, or gives it new flows again.
func (s *service) drain(host string, undo bool) {
	s.t.Helper()
	req := &apiv1.DrainRequest{Name: s.name, Host: host, Mode: "shed", Undrain: undo}
	if _, err := shared.admin.Drain(s.t.Context(), connect.NewRequest(req)); err != nil {
		s.t.Fatal(err)
	}
}
