package forward_test

import (
	"strings"
	"testing"

	"scaffold.dev/scaffold/emu/forward"
)

func TestRoutersAreSeenAndChangedWhileTheyRun(t *testing.T) {
	l := newLine(t, 2, nil)
	all := l.routers[0].Handlers(l.nodes[0])
	get := func(name string) string {
		s, err := all[name].Get()
		must(t, err)
		return s
	}
	for _, r := range []string{"fd0e::/16 port 0 or port 1", "fd0e:1::/32 via fe80::7 port 1", "blackhole fd0e:2::/32", "unreachable 10.7.0.0/16"} {
		must(t, all["routes"].Set(r))
		if !strings.Contains(get("routes"), r+"\n") {
			t.Errorf("%s is not in\n%s", r, get("routes"))
		}
	}
	for to, want := range map[string]string{"fd0e::1": "port 0 or port 1", "fd0e:1::1": "via fe80::7 port 1", "fd0e:2::1": "blackhole",
		"10.7.1.1": "unreachable route", "fd00::1": "local", "2001:db8::1": "no route"} {
		must(t, all["lookup"].Set(to))
		if got := get("lookup"); got != to+" "+want {
			t.Errorf("lookup %q, want %q", got, want)
		}
	}
	must(t, all["routes"].Set("delete fd0e::/16"))
	if strings.Contains(get("routes"), "fd0e::/16") {
		t.Error("still there")
	}
	must(t, all["icmp-rate"].Set("-1"))
	l.from0(t, "fd0c::1", 64, 100)
	if got := get("drops"); len(l.ends[0].got) > 0 || !strings.Contains(got, "no-route 1 told 0\n") {
		t.Error(got)
	}
	for _, name := range []string{"table", "icmp", "neighbours", "ports", "mode"} {
		get(name)
	}
	for name, values := range map[string][]string{
		"routes": {"", "fd0e::", "fd0e::/16", "fd0e::/16 port", "fd0e::/16 port x", "fd0e::/16 port 2", "fd0e::/16 via x port 1", "fd0e::/16 port 1 or",
			"fd0e::/16 port 1 port 0", "delete x", "delete fd99::/16", "fd0e::/16 port -1"},
		"lookup": {"x"}, "mode": {"x", "class"}, "icmp-rate": {"x", "-2"}, "neighbours": {"x"},
	} {
		for _, v := range values {
			if err := all[name].Set(v); err == nil || !strings.ContainsAny(err.Error(), ":;") {
				t.Errorf("%s %q: %v", name, v, err)
			}
		}
	}
}

func TestImpossibleRoutersAreRefused(t *testing.T) {
	for want, c := range map[string]forward.Config{
		"address fe80::1":   {Addresses: addrs("fe80::1")},
		"address ff02::1":   {Addresses: addrs("ff02::1")},
		"MTU 60":            {Ports: []forward.PortConfig{{MTU: 60}}},
		"link-local":        {Ports: []forward.PortConfig{{LinkLocal: addr("fd00::1")}}},
		"of a group":        {Ports: []forward.PortConfig{{MAC: [6]byte{1}}}},
		"of another port":   {Ports: []forward.PortConfig{{Addresses: prefixesOf("fd00::1/64")}, {Addresses: prefixesOf("fd00::2/64")}}},
		"address invalid P": {Ports: []forward.PortConfig{{Addresses: prefixesOf("")}}},
	} {
		if _, err := forward.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	f, err := forward.New(forward.Config{})
	must(t, err)
	for _, r := range []forward.Route{{}, {Prefix: prefix("fd00::/8")}, {Prefix: prefix("fd00::/8"), Hops: make([]forward.NextHop, 2000)}} {
		if f.Add(r) == nil || f.SetRoutes([]forward.Route{forward.To(prefix("fd01::/16"), 0), r}) == nil || len(f.Routes()) > 0 {
			t.Errorf("%v was taken", r)
		}
	}
}
