package agent

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/core/plan"
	"scaffold.dev/scaffold/internal/core/resolve"
	_ "scaffold.dev/scaffold/internal/tests/seed" // property tests draw the same each time in make test
	"scaffold.dev/scaffold/sid"
)

func prefixes(t *rapid.T) netip.Prefix {
	l := sid.Locator(rapid.Uint64().Draw(t, "locator"))
	return netip.PrefixFrom(l.Addr(0), rapid.IntRange(0, 64).Draw(t, "bits")).Masked()
}

func locators(t *rapid.T) sid.Locator { return sid.Locator(rapid.Uint64().Draw(t, "locator")) }

func services(t *rapid.T) sid.ServiceID {
	return sid.ServiceID{SS: rapid.Uint32().Draw(t, "ss"), Suffix: sid.Suffix(rapid.Uint64().Draw(t, "suffix"))}
}

func rules(t *rapid.T) plan.Rules {
	many := func() int { return rapid.IntRange(0, 3).Draw(t, "how many") }
	flag := func() bool { return rapid.Bool().Draw(t, "flag") }
	var r plan.Rules
	for range many() {
		x := plan.Route{Prefix: prefixes(t), Port: rapid.StringMatching("[a-z0-9-]{0,15}").Draw(t, "port"), Gone: flag()}
		if flag() {
			x.Via = netip.MustParseAddr("fe80::7")
		}
		if flag() {
			x.MAC = [6]byte{2, 1, 2, 3, 4, 5}
		}
		r.Routes = append(r.Routes, x)
	}
	for range many() {
		x := plan.Resolution{Triple: sid.Triple{Service: services(t), Proto: sid.Proto(rapid.Uint8().Draw(t, "proto")), Port: rapid.Uint16().Draw(t, "port")}}
		for range many() {
			x.Targets = append(x.Targets, resolve.Target{Locator: locators(t), Weight: rapid.Uint32().Draw(t, "weight")})
		}
		r.Resolutions = append(r.Resolutions, x)
	}
	for range many() {
		r.Services = append(r.Services, plan.ServiceRule{Service: services(t), Instances: rapid.Uint32().Draw(t, "n"), Forbidden: flag(), Gone: flag()})
		r.Probes = append(r.Probes, plan.Probe{Locator: locators(t), Port: "p", Gone: flag()})
		r.Redirects = append(r.Redirects, plan.Redirect{From: locators(t), To: locators(t), Gone: flag()})
		r.Gone = append(r.Gone, plan.Gone{Locator: locators(t), Back: flag()})
	}
	return r
}

func TestRulesCrossTheStreamUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rules(t)
		b, err := proto.Marshal(Encode(want, 7))
		if err != nil {
			t.Fatal(err)
		}
		var m apiv1.Rules
		if err := proto.Unmarshal(b, &m); err != nil {
			t.Fatal(err)
		}
		got, err := Decode(&m)
		if err != nil || m.Generation != 7 || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, %v\nwant %+v", got, err, want)
		}
	})
}

func TestWhatCannotBeReadIsLeftOutAndNamed(t *testing.T) {
	m := &apiv1.Rules{
		Routes:      []*apiv1.Route{{Prefix: "10.0.0.0/8"}, {Prefix: "fd00::/64", Mac: []byte{1}}, {Prefix: "fd00::/64", Via: "x"}, {Prefix: "fd01::/64", Port: "a"}},
		Resolutions: []*apiv1.Resolution{{Proto: 256}, {Port: 1 << 16}, {Port: 80, Proto: 6}},
	}
	r, err := Decode(m)
	if len(r.Routes) != 1 || len(r.Resolutions) != 1 || err == nil {
		t.Fatalf("got %+v, %v: want one route, one resolution and an error", r, err)
	}
	for _, what := range []string{"IPv6 prefix", "MAC address", "via is no", "out of range"} {
		if !strings.Contains(err.Error(), what) {
			t.Errorf("the error does not speak of %q: %v", what, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		var m apiv1.Rules
		if proto.Unmarshal(b, &m) == nil {
			Decode(&m)
		}
	})
}
