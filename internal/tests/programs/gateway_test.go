package programs

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/tests/nstest"
)

// An outsider is a machine without Scaffold beside c1, on which a gateway runs. It has IPv4 and IPv6 there.
type outsider struct {
	t  *testing.T
	ns *nstest.NS
	gw *nstest.Proc
}

// Where the gateway is to outsiders.
const (
	gateway4 = "10.9.1.1"
	gateway6 = "[fd77:1::1]"
)

// outside starts a gateway on c1 and makes a machine beside it.
func outside(t *testing.T, listen ...string) *outsider {
	t.Helper()
	n := theNetwork(t)
	host := nstest.Enter(t, "c1", "/run/netns/"+n.lab.Plan().Node("c1").Netns)
	o := &outsider{t: t, ns: nstest.New(t, "outside")}
	nstest.Veth(t, o.ns, "gw", host, "out")
	t.Cleanup(func() { // the end of a namespace takes its interfaces only after a while
		if dev, err := o.ns.Link().LinkByName("gw"); err == nil {
			o.ns.Link().LinkDel(dev)
		}
	})
	o.ns.Addr(t, "gw", "10.9.1.2/24")
	o.ns.Addr(t, "gw", "fd77:1::2/64")
	host.Addr(t, "out", "10.9.1.1/24")
	host.Addr(t, "out", "fd77:1::1/64")
	argv := []string{self, "gateway", "--socket", filepath.Join(t.TempDir(), "gw.sock"), "--log-flows"}
	for _, l := range listen {
		argv = append(argv, "--listen", l)
	}
	o.gw = nstest.StartBy(t, "the gateway", n.at("c1"), exec.Command(argv[0], argv[1:]...))
	o.gw.WaitFor(t, "gateway.start")
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the gateway printed:\n%s", tail(o.gw.Output()))
		}
	})
	return o
}

// run runs a program outside; it must succeed.
func (o *outsider) run(argv ...string) string {
	o.t.Helper()
	return o.ns.Run(o.t, append([]string{"timeout", fmt.Sprint(patience)}, argv...)...)
}

// tellingNginx says to each client where nginx believes that it comes from.
const tellingNginx = `
daemon off;
user root;
worker_processes 1;
pid %[1]s/nginx.pid;
error_log %[1]s/error.log;
events { worker_connections 512; }
http {
	access_log %[1]s/access.log;
	server {
		listen %[2]s;
		location / { return 200 "$proxy_protocol_addr\n"; }
	}
}
`

func TestOutsidersUseTheirOwnClients(t *testing.T) {
	blob := random(8 << 20)
	s := web(t, blob)
	o := outside(t, "*:80=web")
	for _, argv := range [][]string{
		{"curl", "-4", "-sS", "--fail", "http://" + gateway4 + "/blob", "-o"},
		{"curl", "-6", "-sS", "--fail", "http://" + gateway6 + "/blob", "-o"},
		{"wget", "--no-config", "-nv", "--tries=1", "http://" + gateway4 + "/blob", "-O"},
	} {
		got := filepath.Join(place(t), "blob")
		o.run(append(argv, got)...)
		sameFile(t, got, blob)
	}
	o.run("ab", "-q", "-n", "400", "-c", "8", "http://"+gateway4+"/")
	both(t, "requests in the access logs", hits(t, s, `"GET / HTTP/1.0" 200`))
}

func TestOutsidersSpeakHTTP2(t *testing.T) {
	s := newService(t, "h2outside")
	dir := place(t)
	put(t, dir, "nginx.conf", fmt.Sprintf(tellingNginx, dir, s.at(80)+" http2 proxy_protocol"))
	s.own("s1", dir, "nginx", "-c", dir+"/nginx.conf", "-e", dir+"/error.log")
	s.serving("tcp", 80)
	o := outside(t, "*:80=h2outside,proxy=v2")
	for url, client := range map[string]string{"http://" + gateway4 + "/": "10.9.1.2", "http://" + gateway6 + "/": "fd77:1::2"} {
		if out := o.run("nghttp", url); strings.TrimSpace(out) != client {
			t.Errorf("nghttp %s: %q, want %q", url, out, client)
		}
		if out := o.run("h2load", "-n", "200", "-c", "4", "-m", "10", url); !strings.Contains(out, "200 succeeded, 0 failed") {
			t.Errorf("h2load %s:\n%s", url, tail(out))
		}
	}
}

const tellingHAProxy = `
defaults
	mode http
	timeout client 10s
	timeout server 10s
	timeout connect 10s
frontend f
	bind %s accept-proxy
	http-request return status 200 content-type text/plain lf-string "%%[src]\n"
`

func TestServersLearnTheirOutsider(t *testing.T) {
	s := newService(t, "telling")
	one, two := place(t), place(t)
	put(t, one, "nginx.conf", fmt.Sprintf(tellingNginx, one, s.at(80)+" proxy_protocol"))
	s.own("s1", one, "nginx", "-c", one+"/nginx.conf", "-e", one+"/error.log")
	s.own("s2", two, "haproxy", "-db", "-f", put(t, two, "haproxy.cfg", fmt.Sprintf(tellingHAProxy, s.at(80))))
	s.serving("tcp", 80)
	o := outside(t, "*:80=telling,proxy=v1", "*:81=telling:80,proxy=v2")
	for _, port := range []string{":80/", ":81/"} {
		for gw, client := range map[string]string{gateway4: "10.9.1.2", gateway6: "fd77:1::2"} {
			for range 6 { // some to each of the two
				if out := o.run("curl", "-sS", "--fail", "http://"+gw+port); strings.TrimSpace(out) != client {
					t.Errorf("curl http://%s%s: %q, want %q", gw, port, out, client)
				}
			}
		}
	}
}

func TestOutsidersAskByUDP(t *testing.T) {
	s := newService(t, "dnsoutside")
	dir := place(t)
	put(t, dir, "example.org.zone", fmt.Sprintf(zone, longText()))
	put(t, dir, "named.conf", fmt.Sprintf("zone \"example.org\" { type master; file \"%s/example.org.zone\"; };\n", dir))
	put(t, dir, "pdns.conf", fmt.Sprintf(pdnsConf, dir, s.addr)+"proxy-protocol-from=::/0\n")
	srv := s.own("s1", dir, "pdns_server", "--config-dir="+dir)
	s.serving("udp", 53)
	o := outside(t, // not *:53, where hostd answers
		gateway4+":53=dnsoutside,proxy=v2", gateway4+":53/udp=dnsoutside,proxy=v2", gateway6+":53=dnsoutside,proxy=v2", gateway6+":53/udp=dnsoutside,proxy=v2")
	for _, at := range []string{"@10.9.1.1", "@fd77:1::1"} {
		for _, how := range []string{"+notcp", "+tcp"} {
			if out := o.run("dig", "+short", "+tries=1", at, "www.example.org", "AAAA", how); strings.TrimSpace(out) != "2001:db8::80" {
				t.Errorf("dig %s %s: %q", at, how, out)
			}
		}
	}
	for _, client := range []string{"10.9.1.2", "fd77:1::2"} {
		srv.proc.WaitFor(t, "("+client+") wants")
	}
}
