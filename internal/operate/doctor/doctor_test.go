package doctor

import (
	"errors"
	"io/fs"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/bpf/features"
	"scaffold.dev/scaffold/sid"
)

// healthy is a machine with nothing in the way; files and programs replace or add to its own.
func healthy(files, programs map[string]string) Machine {
	all := map[string]string{
		"/proc/self/status":                   "Name:\tx\nCapEff:\t000001ffffffffff\n",
		"/proc/sys/kernel/osrelease":          "6.12.0",
		"/proc/self/mountinfo":                "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:1 - cgroup2 cgroup2 rw",
		"/proc/net/if_inet6":                  "",
		"/lib/modules/6.12.0/modules.builtin": "kernel/drivers/net/vxlan/vxlan.ko\nkernel/drivers/net/wireguard/wireguard.ko\n",
		"/sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc",
	}
	for name, text := range files {
		all[name] = text
	}
	return Machine{
		Read: func(path string) (string, bool) { text, ok := all[path]; return text, ok },
		Run: func(name string, _ ...string) (string, error) {
			if _, ok := programs[name]; name == "ovs-vswitchd" && !ok {
				return "ovs-vswitchd (Open vSwitch) 3.1.0\n", nil
			}
			if out, ok := programs[name]; ok && out != "absent" {
				return out, nil
			}
			return "", fs.ErrNotExist
		},
		Features: func() []features.Feature { return []features.Feature{{Name: "tc", Needed: true}} },
		Links:    func() ([]Link, error) { return []Link{{Name: "eth0", MTU: 1500, Up: true}}, nil },
		Synced:   func() (bool, error) { return true, nil },
		Space:    sid.DefaultSpace(),
	}
}

func TestAHealthyMachineIsReady(t *testing.T) {
	r := Examine(healthy(nil, nil))
	if r.Verdict != Good || len(r.Findings) == 0 {
		t.Errorf("report = %+v", r)
	}
}

func TestEveryFindingIsMade(t *testing.T) {
	const nft = "table inet filter {\n\tchain input {\n\t\ttype filter hook input priority filter; policy "
	for _, c := range []struct {
		name     string
		files    map[string]string
		programs map[string]string
		change   func(*Machine)
		want     State
		about    string // in the finding's name
	}{
		{name: "no privileges", files: map[string]string{"/proc/self/status": "CapEff:\t0000000000000000"}, want: Missing, about: "capabilities"},
		{name: "feature needed", change: func(m *Machine) {
			m.Features = func() []features.Feature {
				return []features.Feature{{Name: "ring", Needed: true, Err: errors.New("no")}}
			}
		}, want: Missing, about: "ring"},
		{name: "feature wanted", change: func(m *Machine) {
			m.Features = func() []features.Feature { return []features.Feature{{Name: "tcx", Err: errors.New("no")}} }
		}, want: Note, about: "tcx"},
		{name: "cgroup part", files: map[string]string{"/proc/self/mountinfo": "31 23 0:28 /docker/x /sys/fs/cgroup rw - cgroup2 c rw"}, want: Note, about: "cgroup v2"},
		{name: "cgroup none", files: map[string]string{"/proc/self/mountinfo": ""}, want: Note, about: "cgroup v2"},
		{name: "sessions are groups", files: map[string]string{"/proc/sys/kernel/sched_autogroup_enabled": "1", "/proc/sys/kernel/osrelease": "6.18.44"}, want: Note, about: "scheduler"},
		{name: "groups that starve nobody", files: map[string]string{"/proc/sys/kernel/sched_autogroup_enabled": "1", "/proc/sys/kernel/osrelease": "6.18.45", "/lib/modules/6.18.45/modules.builtin": "kernel/drivers/net/vxlan/vxlan.ko\nkernel/drivers/net/wireguard/wireguard.ko\n"}, want: Good, about: "scheduler"},
		{name: "IPv6 off", files: map[string]string{"/proc/sys/net/ipv6/conf/all/disable_ipv6": "1"}, want: InWay, about: "disable_ipv6"},
		{name: "no JIT", files: map[string]string{"/proc/sys/net/core/bpf_jit_enable": "0"}, want: Note, about: "bpf_jit_enable"},
		{name: "no Open vSwitch", programs: map[string]string{"ovs-vswitchd": "absent"}, want: Note, about: "Open vSwitch"},
		{name: "no WireGuard", files: map[string]string{"/lib/modules/6.12.0/modules.builtin": "kernel/drivers/net/vxlan/vxlan.ko", "/proc/misc": "200 tun"}, want: Note, about: "WireGuard"},
		{name: "no TUN either", files: map[string]string{"/lib/modules/6.12.0/modules.builtin": "kernel/drivers/net/vxlan/vxlan.ko"}, want: Note, about: "WireGuard"},
		{name: "no VXLAN", files: map[string]string{"/lib/modules/6.12.0/modules.builtin": ""}, want: Note, about: "VXLAN"},
		{name: "small buffers", files: map[string]string{"/proc/sys/net/core/rmem_default": "212992"}, want: Note, about: "rmem_default"},
		{name: "large buffers", files: map[string]string{"/proc/sys/net/core/rmem_default": "8388608"}, want: Good, about: "rmem_default"},
		{name: "state rule on a router", files: map[string]string{"/proc/sys/net/ipv6/conf/all/forwarding": "1"},
			programs: map[string]string{"nft": nft + "accept;\n\t\tct state invalid drop\n\t}\n}"}, want: InWay, about: "nftables by connection state"},
		{name: "state rule, exempt", files: map[string]string{"/proc/sys/net/ipv6/conf/all/forwarding": "1"},
			programs: map[string]string{"nft": nft + "accept;\n\t\tip6 saddr fd5d:0:1::/48 notrack\n\t\tct state invalid drop\n\t}\n}"}, want: Good, about: "nftables"},
		{name: "state rule", programs: map[string]string{"nft": nft + "accept;\n\t\tct state invalid drop\n\t}\n}"}, want: Note, about: "nftables by connection state"},
		{name: "policy drop", programs: map[string]string{"nft": nft + "drop;\n\t}\n}"}, want: InWay, about: "nftables with policy drop"},
		{name: "reverse path", programs: map[string]string{"nft": nft + "accept;\n\t\tmeta nfproto ipv6 fib saddr . mark . iif oif missing drop\n\t}\n}"}, want: Note, about: "nftables reverse-path"},
		{name: "IPv4 alone", programs: map[string]string{"nft": "table ip filter {\n chain input {\n type filter hook input priority 0; policy drop;\n ct state invalid drop\n }\n}"}, want: Good, about: "nftables"},
		{name: "harmless", programs: map[string]string{"nft": nft + "accept;\n\t\ttcp dport 22 accept\n\t}\n}"}, want: Good, about: "nftables"},
		{name: "legacy", files: map[string]string{"/proc/net/ip6_tables_names": "filter"},
			programs: map[string]string{"ip6tables-legacy-save": "*filter\n:INPUT DROP [0:0]\n-A INPUT -m conntrack --ctstate INVALID -j DROP\nCOMMIT"}, want: InWay, about: "ip6tables with policy drop"},
		{name: "legacy unknown", files: map[string]string{"/proc/net/ip6_tables_names": "filter"}, want: Note, about: "ip6tables"},
		{name: "firewalld", files: map[string]string{"/etc/firewalld/firewalld.conf": "IPv6_rpfilter=yes", "/run/firewalld.pid": "7"}, want: InWay, about: "firewalld"},
		{name: "conntrack idle", files: map[string]string{"/proc/sys/net/netfilter/nf_conntrack_count": "12"}, want: Good, about: "conntrack"},
		{name: "networkd", files: map[string]string{"/run/systemd/netif/state": "x"}, want: Note, about: "systemd-networkd"},
		{name: "clock source", files: map[string]string{"/sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet"}, want: Note, about: "source"},
		{name: "clock free", change: func(m *Machine) { m.Synced = func() (bool, error) { return false, nil } }, want: Note, about: "synchronised"},
		{name: "tiny MTU", change: func(m *Machine) {
			m.Links = func() ([]Link, error) { return []Link{{Name: "ppp0", MTU: 576, Up: true}}, nil }
		}, want: InWay, about: "MTU of ppp0"},
		{name: "two MTUs", change: func(m *Machine) {
			m.Links = func() ([]Link, error) {
				return []Link{{Name: "a", MTU: 1500, Up: true}, {Name: "b", MTU: 9000, Up: true}, {Name: "lo", MTU: 65536, Up: true, Loopback: true}}, nil
			}
		}, want: Note, about: "MTU"},
		{name: "address clash", change: func(m *Machine) {
			m.Links = func() ([]Link, error) {
				return []Link{{Name: "a", MTU: 1500, Up: true, Addresses: []netip.Prefix{netip.MustParsePrefix("fd5c::7/64")}}}, nil
			}
		}, want: InWay, about: "address of a"},
	} {
		m := healthy(c.files, c.programs)
		if c.change != nil {
			c.change(&m)
		}
		r := Examine(m)
		if r.Verdict != c.want {
			t.Errorf("%s: verdict %q, want %q: %+v", c.name, r.Verdict, c.want, r.Findings)
		}
		if !has(r, c.about, c.want) {
			t.Errorf("%s: no finding about %q with state %q in %+v", c.name, c.about, c.want, r.Findings)
		}
	}
}

func has(r Report, about string, state State) bool {
	for _, f := range r.Findings {
		if strings.HasPrefix(f.Name, about) || strings.HasSuffix(f.Name, about) {
			if f.State == state {
				return true
			}
		}
	}
	return false
}

// A clock that nothing disciplines keeps a machine out of a network with keys, and the finding says so.
func TestAFreeClockIsNamedWithWhatItCosts(t *testing.T) {
	m := healthy(nil, nil)
	m.Synced = func() (bool, error) { return false, nil }
	want := Finding{Area: "clock", Name: "synchronised", State: Note, Found: "no",
		Cost: "events and logs of different hosts do not line up; in a network with keys nobody joins whose clock is 5 minutes off", Do: "run chrony or systemd-timesyncd"}
	if got := Examine(m).Findings; !slices.Contains(got, want) {
		t.Errorf("%+v is not in %+v", want, got)
	}
}

// Whoever is told that something is wrong is told what it costs and what to do.
func TestWhatIsWrongComesWithCostAndCure(t *testing.T) {
	bad := healthy(map[string]string{"/proc/self/status": "", "/proc/self/mountinfo": "", "/proc/sys/net/core/bpf_jit_enable": "0",
		"/proc/net/ip6_tables_names": "filter", "/run/systemd/netif/state": "x"}, map[string]string{"nft": "table inet f {\nchain c {\ntype filter hook input priority 0; policy drop;\nct state invalid drop\n}\n}"})
	for _, f := range Examine(bad).Findings {
		if f.State != Good && (f.Cost == "" || f.Do == "") {
			t.Errorf("%s: says neither what it costs nor what to do: %+v", f.Name, f)
		}
	}
}

func FuzzReadRules(f *testing.F) {
	f.Add("table inet x {\nchain y {\ntype filter hook input priority 0; policy drop;\n}\n}")
	f.Add(":INPUT DROP [0:0]\n-A INPUT -m rpfilter --invert -j DROP")
	f.Add("table\nchain\n: \n:\n")
	f.Fuzz(func(_ *testing.T, text string) { readRules(text) })
}

func TestAKernelBelowTheFloorIsTold(t *testing.T) {
	for release, want := range map[string]State{
		"6.1.0-50-amd64": Good, "6.18.44": Good, "7.3.4+deb13-amd64": Good, "10.0": Good, "": Good, "something": Good,
		"5.10.0-32-amd64": Note, "6.0.12": Note, "4.19": Note,
	} {
		f := floor(release)
		if f.State != want || f.State == Note && (f.Cost == "" || f.Do == "") {
			t.Errorf("%q: %+v, want %s", release, f, want)
		}
	}
}

func TestAnOpenNetworkIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		network func() (Network, bool)
		want    State
		found   string
	}{
		"no daemon answers": {func() (Network, bool) { return Network{}, false }, "", ""},
		"keys":              {func() (Network, bool) { return Network{Trust: "keys"}, true }, Good, "needs a key"},
		"open, here alone":  {func() (Network, bool) { return Network{Trust: "open"}, true }, Good, "open, and reached from its controller's machine alone"},
		"open": {func() (Network, bool) {
			return Network{Trust: "open", Exposed: []Hole{{"the network is open", "whoever reaches it joins", "give it keys"}}}, true
		}, Note, "the network is open"},
	} {
		m := healthy(nil, nil)
		m.Network = c.network
		var got Finding
		r := Examine(m)
		for _, f := range r.Findings {
			if f.Area == "network" {
				got = f
			}
		}
		if got.State != c.want || !strings.Contains(got.Found, c.found) || c.want == Note && (got.Cost == "" || got.Do == "" || r.Verdict != Note) {
			t.Errorf("%s: %+v in a report that is %q, want %q and %q", name, got, r.Verdict, c.want, c.found)
		}
	}
}
