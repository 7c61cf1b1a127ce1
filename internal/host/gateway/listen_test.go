package gateway

import (
	"strings"
	"testing"
	"time"
)

func TestListenersAreReadAsOperatorsWriteThem(t *testing.T) {
	for text, want := range map[string]struct {
		at, to  string
		sockets int
		Options
	}{
		"0.0.0.0:80=web":                  {"0.0.0.0:80", "web:80", 1, Options{}},
		"[::]:443=shop:8443,proxy=v2":     {"[::]:443", "shop:8443", 1, Options{Proxy: 2}},
		":80=Web":                         {"*:80", "web:80", 2, Options{}},
		"*:53/udp=dns,idle=5s,max=7":      {"*:53/udp", "dns:53", 2, Options{Max: 7, Idle: 5 * time.Second}},
		"192.0.2.7:53/tcp=db.shop:5353":   {"192.0.2.7:53", "db.shop:5353", 1, Options{}},
		"[fe80::1%eth0]:80=web,proxy=v1":  {"[fe80::1%eth0]:80", "web:80", 1, Options{Proxy: 1}},
		"unix:/run/web.sock=web:80,max=1": {"unix:/run/web.sock", "web:80", 1, Options{Max: 1}},
	} {
		l, err := ParseListen(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if l.At() != want.at || l.Target() != want.to || len(l.sockets()) != want.sockets || l.Options != want.Options {
			t.Errorf("%s: %s to %s at %v with %+v", text, l.At(), l.Target(), l.sockets(), l.Options)
		}
	}
}

func TestBadListenersAreRefusedInOneLine(t *testing.T) {
	for text, says := range map[string]string{
		"":                                 "want ADDRESS",
		"80=web":                           "want ADDRESS:PORT",
		"0.0.0.0:80":                       "want ADDRESS",
		"0.0.0.0:80=":                      "want ADDRESS",
		"0.0.0.0:0=web":                    "1 to 65535",
		"0.0.0.0:http=web":                 "1 to 65535",
		"0.0.0.0:70000=web":                "1 to 65535",
		"::1:80=web":                       "brackets",
		"example.org:80=web":               "is no address",
		"[::ffff:192.0.2.1]:80=web":        "write 192.0.2.1",
		"0.0.0.0:80/sctp=web":              "tcp or udp",
		"0.0.0.0:80=we b":                  "not allowed",
		"0.0.0.0:80=web:x":                 "1 to 65535",
		"0.0.0.0:80=web,proxy=v3":          "v1 or v2",
		"0.0.0.0:80=web,proxy=v1,proxy=v2": "twice",
		"0.0.0.0:53/udp=dns,proxy=v1":      "no datagrams",
		"0.0.0.0:80=web,max=0":             "from 1 up",
		"0.0.0.0:80=web,idle=5s":           "UDP",
		"0.0.0.0:53/udp=dns,idle=1ms":      "from 1s up",
		"0.0.0.0:80=web,colour=red":        "proxy, max or idle",
		"unix:=web:80":                     "1 to 107",
		"unix:/run/a=web":                  "no port",
	} {
		_, err := ParseListen(text)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want one line with %q", text, err, says)
		}
	}
}

func TestOneAddressLeadsToOneService(t *testing.T) {
	for _, list := range [][]string{nil, {"0.0.0.0:80=web", "*:80=shop"}, {"[::]:80=web", "[::]:80=web"}} {
		cfg := Config{Listen: list}
		if err := cfg.Check(); err == nil {
			t.Errorf("%v: taken", list)
		}
	}
	cfg := Config{Listen: []string{"0.0.0.0:80=web", "[::]:80=shop", "0.0.0.0:80/udp=web"}}
	if err := cfg.Check(); err != nil {
		t.Error(err)
	}
}

func FuzzParseListen(f *testing.F) {
	for _, s := range []string{"0.0.0.0:80=web", "[::]:443=shop:8443,proxy=v2,max=3", "unix:/x=web:1", "*:53/udp=dns,idle=5s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseListen(text)
		if err != nil {
			return
		}
		again, err := ParseListen(l.At() + "=" + l.Target())
		if err != nil || again.At() != l.At() || again.Target() != l.Target() {
			t.Errorf("%q is %s=%s, which reads as %s=%s, %v", text, l.At(), l.Target(), again.At(), again.Target(), err)
		}
	})
}
