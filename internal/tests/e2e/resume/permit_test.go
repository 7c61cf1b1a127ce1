package resume

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"scaffold.dev/scaffold/internal/tests/safety"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/core/permit"
	"scaffold.dev/scaffold/internal/tests/nstest"
	"scaffold.dev/scaffold/internal/trust"
	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// scaffold runs a command on a host, and gives what it printed and its exit code.
func (s *service) scaffold(host string, argv ...string) (string, int) {
	s.t.Helper()
	out, err := nstest.TryBy(at(host), exec.Command("/proc/self/exe", argv...))
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out, 0
	case errors.As(err, &exit):
		return out, exit.ExitCode()
	}
	s.t.Fatalf("scaffold %v: %v", argv, err)
	return "", 0
}

// refused waits until a host's daemon says why it may not serve.
func (s *service) refused(host, why string) {
	s.t.Helper()
	nstest.Wait(s.t, "the logs in "+shared.lab.Dir(), func() error {
		r, err := local(s.t, host).GetHostStatus(s.t.Context(), connect.NewRequest(&apiv1.GetHostStatusRequest{}))
		if err != nil {
			return err
		}
		for _, g := range r.Msg.Refused {
			if strings.Contains(g.Reason, "service "+s.name+" ") && strings.Contains(g.Reason, why) {
				return nil
			}
		}
		return fmt.Errorf("%s is refused %v, want %q", host, r.Msg.Refused, why)
	})
}

// keyed starts a service that has a key, on hosts that show nothing yet, and gives the file of the key.
func keyed(t *testing.T, name string, hosts ...string) (*service, string) {
	t.Helper()
	s := serve(t, name+"-first", "httpd", "80", size, nil, nil) // the lab, and what is served
	s.name = name
	key := filepath.Join(s.dir, "key")
	for _, argv := range [][]string{{"service", "keygen", key}, {"service", "create", name, "--key", key + ".pub", "--lab", shared.lab.File.Name}} {
		if out, code := s.scaffold("ctl", argv...); code != 0 {
			t.Fatalf("%v: %d %s", argv, code, out)
		}
	}
	for _, host := range hosts {
		s.start(host)
	}
	return s, key
}

// permit writes one for a host.
func (s *service) permit(key, host, last string) (file string) {
	s.t.Helper()
	out, code := s.scaffold("ctl", "service", "delegate", s.name, "--key", key, "--host", host, "--for", last, "--lab", shared.lab.File.Name)
	if code != 0 {
		s.t.Fatalf("delegate: %d %s", code, out)
	}
	file = filepath.Join(s.t.TempDir(), host+".permit")
	if err := os.WriteFile(file, []byte(out), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

// shows presents a permit on a host and says what came of it.
func (s *service) shows(host, permit string) (string, int) {
	s.t.Helper()
	return s.scaffold(host, "run", "--service", s.name, "--permit", permit, "--", "true")
}

// In a network with keys a service with a key is served by whom its key permits, until that ends; flows stay.
func TestWhoMayServeAServiceWithAKeyInANetworkWithKeys(t *testing.T) {
	safety.Test(t, safety.Door)
	const count = `scaffold_controld_registrations_refused_total{why="permit"}`
	s, key := keyed(t, "vault", "s1", "s2")
	for _, host := range []string{"s1", "s2"} {
		s.refused(host, "shows no permit")
		told(t, 0, "instance.refused", "vault", host+" tcp/80 may not serve")
	}
	s.gets("c1", "No route to host")
	long, short := s.permit(key, "s1", "1h"), s.permit(key, "s2", "3s")
	if out, code := s.shows("s2", long); code != 4 || !strings.Contains(out, "for another host") {
		t.Errorf("s2 with the permit of s1: exit code %d, %s", code, out)
	}
	if out, code := s.shows("s2", short); code != 0 {
		t.Fatalf("s2 with its permit: exit code %d, %s", code, out)
	}
	s.serving(1)
	p, got := s.fast()
	s.arrived(p, got, size/16)
	p.Signal(syscall.SIGSTOP)
	if out, code := s.shows("s1", long); code != 0 {
		t.Fatalf("s1 with its permit: exit code %d, %s", code, out)
	}
	told(t, 0, "permit.expiring", "vault", "scaffold service delegate vault --host s2")
	s.refused("s2", "has expired")
	s.serving(1)
	told(t, 0, "instance.down", "vault", "s2 tcp/80: instance is down: its host may not serve any more")
	if out, code := s.shows("s2", short); code != 4 || !strings.Contains(out, "has expired") {
		t.Errorf("an expired permit: exit code %d, %s", code, out)
	}
	p.Signal(syscall.SIGCONT)
	s.whole(p, got)
	before := metric(t, count)
	s.replayed("s1", long)
	if now := metric(t, count); before < 3 || now < before+2 { // s2 may ask again meanwhile
		t.Errorf("%v refusals are counted, %v after two replays", before, now)
	}
	s.serving(1)
}

// metric reads one of the controller's.
func metric(t *testing.T, name string) (value float64) {
	t.Helper()
	client, base, err := api.Dial(shared.lab.Controller())
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	answer, err := client.Get(base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, name+" "); ok {
			fmt.Sscan(n, &value)
		}
	}
	return value
}

// replayed has a member of the network show what another one showed to the controller: its permit, with its signature of
// another session, and with one of his own.
func (s *service) replayed(victim, file string) {
	s.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	permits, err := permit.Parse(text)
	if err != nil {
		s.t.Fatal(err)
	}
	theirs, err := trust.Directory(shared.lab.ProgramDir(victim, "state")).Key()
	if err != nil {
		s.t.Fatal(err)
	}
	m := s.mallory()
	for _, by := range []struct {
		key       ed25519.PrivateKey
		challenge []byte
	}{{theirs, []byte("of an older session")}, {m.key, m.challenge}} {
		if why := m.shows(permits[0], by.key, by.challenge); !strings.Contains(why, "for another host") {
			s.t.Errorf("a replay is refused with %q", why)
		}
	}
	m.leave()
}

// A mallory is a host of the network that is nothing but its session with the controller.
type mallory struct {
	t         *testing.T
	key       ed25519.PrivateKey
	stream    *connect.BidiStreamForClient[apiv1.HostReport, apiv1.HostOrder]
	challenge []byte
}

// mallory joins, on the controller's own socket, which asks nobody for a credential.
func (s *service) mallory() *mallory {
	s.t.Helper()
	client, base, err := api.Dial(shared.lab.Controller())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(client.CloseIdleConnections)
	m := &mallory{t: s.t, stream: apiv1connect.NewAgentClient(client, base).Host(s.t.Context())}
	_, m.key, _ = ed25519.GenerateKey(nil)
	ports := shared.lab.Plan().Node("r1").Ports
	join := &apiv1.Join{Name: "mallory", BootId: "x", Netns: "1", Succeeds: true, Attachment: &apiv1.Attachment{
		Router: "r1", Port: ports[len(ports)-1].Dev, LinkLocal: "fe80::99", Mac: []byte{2, 0, 0, 0, 0, 0x99}}}
	api.SignJoin(join, m.key, time.Now())
	m.send(&apiv1.HostReport{Report: &apiv1.HostReport_Join{Join: join}})
	m.hear(func(o *apiv1.HostOrder) bool {
		if r := o.GetRefused(); r != nil {
			m.t.Fatal(r.Reason)
		}
		m.challenge = o.GetJoined().GetChallenge()
		return o.GetJoined() != nil
	})
	return m
}

func (m *mallory) send(r *apiv1.HostReport) {
	m.t.Helper()
	if err := m.stream.Send(r); err != nil {
		m.t.Fatal(err)
	}
}

// hear takes orders until one is wanted.
func (m *mallory) hear(want func(*apiv1.HostOrder) bool) {
	m.t.Helper()
	for {
		o, err := m.stream.Receive()
		if err != nil {
			m.t.Fatal(err)
		}
		if want(o) {
			return
		}
	}
}

// shows registers the service of a permit, signed by a key over a challenge, and returns why not.
func (m *mallory) shows(p wire.Permit, by ed25519.PrivateKey, challenge []byte) (why string) {
	m.t.Helper()
	t := sid.Triple{Service: p.Service, Proto: sid.TCP, Port: 80}
	r := &apiv1.Registration{Ss: t.Service.SS, Suffix: uint64(t.Service.Suffix), Proto: uint32(t.Proto), Port: uint32(t.Port), Ready: true,
		Permit: p.Append(nil), Signature: wire.Stand{Challenge: challenge, Triple: t}.Sign(by)}
	m.send(&apiv1.HostReport{Report: &apiv1.HostReport_Delta{Delta: &apiv1.Registrations{Entries: []*apiv1.Registration{r}}}})
	m.hear(func(o *apiv1.HostOrder) bool {
		why = o.GetRegistrationRefused().GetReason()
		return why != ""
	})
	return why
}

// leave returns when the controller has let it go.
func (m *mallory) leave() {
	m.t.Helper()
	m.send(&apiv1.HostReport{Report: &apiv1.HostReport_Leave{Leave: &apiv1.Leave{}}})
	for {
		if _, err := m.stream.Receive(); err != nil {
			return
		}
	}
}
