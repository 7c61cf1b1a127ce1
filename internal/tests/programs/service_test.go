package programs

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// A service is a name, with the servers that the test started for it.
type service struct {
	t       *testing.T
	net     network
	name    string // as created: "web"
	host    string // as clients use it: "web.svc"
	addr    netip.Addr
	servers []server
}

// A server is one instance: a program on a host, and where it writes.
type server struct {
	host string
	dir  string
	argv []string
	proc *nstest.Proc
}

// newService creates the service; if the test fails, what its servers printed is shown.
func newService(t *testing.T, name string) *service {
	t.Helper()
	s := &service{t: t, net: theNetwork(t), name: name}
	s.host, s.addr = s.net.create(t, name)
	t.Cleanup(s.explain)
	return s
}

// own starts a server that binds the service's address by its own configuration.
func (s *service) own(host, dir string, argv ...string) server {
	return s.start(host, dir, "", argv)
}

// wild starts a server that binds the wildcard address, under `scaffold run --service`.
func (s *service) wild(host, dir string, argv ...string) server {
	return s.start(host, dir, s.name, argv)
}

func (s *service) start(host, dir, wild string, argv []string) server {
	s.t.Helper()
	srv := server{host, dir, argv, s.net.start(s.t, host, wild, argv)}
	s.servers = append(s.servers, srv)
	return srv
}

// serving waits until every server that was started serves the port.
func (s *service) serving(proto string, port int) {
	s.t.Helper()
	s.net.serving(s.t, s.name, proto, port, len(s.servers))
}

// at is the service's address with a port, in brackets.
func (s *service) at(port int) string {
	return netip.AddrPortFrom(s.addr, uint16(port)).String()
}

// url is where clients find a path of the service: by name.
func (s *service) url(path string) string { return "http://" + s.host + path }

// explain shows the servers' output and files when the test has failed.
func (s *service) explain() {
	if !s.t.Failed() {
		return
	}
	for i, srv := range s.servers {
		s.t.Logf("server %d of %s (%s on %s, files in %s) printed:\n%s%s", i+1, s.name, strings.Join(srv.argv, " "),
			srv.host, srv.dir, tail(srv.proc.Output()), logs(srv.dir))
	}
	s.t.Logf("the daemons of the lab wrote:\n%s", s.net.daemonLogs())
}

// client runs a program on c1 and returns what it printed; it must succeed.
func client(t *testing.T, argv ...string) string {
	t.Helper()
	return on(t, "c1", argv...)
}

// on runs a program on a host and returns what it printed; it must succeed.
func on(t *testing.T, host string, argv ...string) string {
	t.Helper()
	out, err := theNetwork(t).run(host, append([]string{"timeout", strconv.Itoa(patience)}, argv...))
	if err != nil {
		t.Fatalf("%s: %q: %v (124: not done after %d s)\n%s", host, argv, err, patience, tail(out))
	}
	return out
}

// patience is the seconds after which a program that hangs is ended; none takes a tenth of it.
const patience = 60
