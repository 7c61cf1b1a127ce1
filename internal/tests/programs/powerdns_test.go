package programs

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

const pdnsConf = `
launch=bind
bind-config=%[1]s/named.conf
local-address=%[2]s
local-port=53
socket-dir=%[1]s
daemon=no
guardian=no
disable-syslog=yes
log-dns-queries=yes
loglevel=6
query-logging=yes
write-pid=no
security-poll-suffix=
udp-truncation-threshold=4096
cache-ttl=0
query-cache-ttl=0
negquery-cache-ttl=0
`

// The long record makes answers that fill several fragments over UDP, and that need TCP where the
// client takes only 512 bytes.
const zone = `$TTL 300
@    IN SOA  ns.example.org. root.example.org. 1 3600 600 86400 300
@    IN NS   ns.example.org.
ns   IN AAAA 2001:db8::53
www  IN AAAA 2001:db8::80
text IN TXT  "carried by name"
long IN TXT  %s
`

func TestPowerDNS(t *testing.T) {
	s := newService(t, "dns")
	long := longText()
	for i, host := range []string{"s1", "s2"} {
		addr, start := s.addr.String(), s.own
		if i == 1 {
			addr, start = "::", s.wild
		}
		dir := place(t)
		put(t, dir, "example.org.zone", fmt.Sprintf(zone, long))
		put(t, dir, "named.conf", fmt.Sprintf("zone \"example.org\" { type master; file \"%s/example.org.zone\"; };\n", dir))
		put(t, dir, "pdns.conf", fmt.Sprintf(pdnsConf, dir, addr))
		start(host, dir, "pdns_server", "--config-dir="+dir)
	}
	s.serving("udp", 53)
	s.serving("tcp", 53)

	long = strings.ReplaceAll(long, "  ", " ")
	for _, q := range []struct {
		how, name, kind, want string
	}{
		{"+notcp", "www", "AAAA", "2001:db8::80"},
		{"+tcp", "www", "AAAA", "2001:db8::80"},
		{"+notcp", "text", "TXT", `"carried by name"`},
		{"+tcp", "text", "TXT", `"carried by name"`},
		{"+ignore +bufsize=4096", "long", "TXT", long}, // fragments
		{"+noedns", "long", "TXT", long},               // truncated, asked again by TCP
	} {
		argv := append([]string{"dig", "+short", "+tries=1", "@" + s.host, q.name + ".example.org", q.kind}, strings.Fields(q.how)...)
		if out := strings.TrimSpace(client(t, argv...)); out != q.want {
			t.Errorf("%v: got\n%s\nwant\n%s", argv, out, q.want)
		}
	}
	s.spread(t)
}

// longText is 3000 bytes of text in strings of 250.
func longText() string {
	var parts []string
	for text := letters(3000); text != ""; text = text[250:] {
		parts = append(parts, `"`+text[:250]+`"`)
	}
	return strings.Join(parts, " ")
}

// spread asks often enough that both instances must have been asked: each dig is a flow of its own.
func (s *service) spread(t *testing.T) {
	t.Helper()
	batch := strings.Repeat("www.example.org AAAA\n", 60)
	out := client(t, "dig", "@"+s.host, "+short", "+tries=1", "-f", put(t, place(t), "queries", batch))
	if n := strings.Count(out, "2001:db8::80"); n != 60 {
		t.Errorf("%d of 60 queries answered", n)
	}
	n := map[string]int{}
	for _, srv := range s.servers {
		n[srv.host] = strings.Count(srv.proc.Output(), "www.example.org|AAAA")
	}
	both(t, "queries in the logs ("+strconv.Itoa(60)+" made)", n)
}
