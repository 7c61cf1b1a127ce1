package ofconn

import (
	"errors"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/openflow/ofp"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

var bridges = map[string]ofp.Version{"OpenFlow13": ofp.V13, "OpenFlow15": ofp.V15, "OpenFlow10,OpenFlow13,OpenFlow15": ofp.V15}

func TestOpenVSwitchAgreesOnTheHighestVersion(t *testing.T) {
	ovs := nstest.New(t, "switch").NewOVS(t)
	for protocols, want := range bridges {
		c := dial(t, ovs.Bridge(t, strings.ReplaceAll(strings.ReplaceAll(protocols, "OpenFlow", ""), ",", "_"), protocols))
		if c.Version() != want || c.Features().DatapathID == 0 || c.Features().Tables == 0 {
			t.Errorf("%s: %v with %+v, want %v and a datapath", protocols, c.Version(), c.Features(), want)
		}
		if err := c.Do(t.Context(), ofp.FlowMod{Match: ofp.Match{ofp.Uint(ofp.EthType, 0x86dd)}}); err != nil {
			t.Errorf("%s: %v", protocols, err)
		}
	}
	if c, err := Dial(t.Context(), "unix:"+ovs.Bridge(t, "old", "OpenFlow10"), nil, Config{}); !errors.Is(err, ErrVersion) {
		t.Errorf("Dial = %v, %v to a switch of 1.0, want %v", c, err, ErrVersion)
	}
}

// TestOpenVSwitchRollsBundlesBack: one bad message, found when the bundle is put together or only when
// it is committed, leaves nothing of the others.
func TestOpenVSwitchRollsBundlesBack(t *testing.T) {
	ovs := nstest.New(t, "switch").NewOVS(t)
	for _, protocols := range []string{"OpenFlow13", "OpenFlow15"} {
		c := dial(t, ovs.Bridge(t, protocols, protocols))
		flow := func(i int, as ...ofp.Action) ofp.Body {
			return ofp.FlowMod{Priority: uint16(i), Cookie: 9, Match: ofp.Match{ofp.Uint(ofp.InPort, uint64(i))}, Instructions: ofp.Apply(as...)}
		}
		var good []ofp.Body
		for i := 1; i <= 100; i++ {
			good = append(good, flow(i, ofp.Output{Port: ofp.PortIn}))
		}
		for _, bad := range []struct {
			body ofp.Body
			want string
		}{
			{flow(500, ofp.Group{ID: 77}), "OFPBAC_BAD_OUT_GROUP"}, // found at the commit
			{ofp.FlowMod{Match: ofp.Match{ofp.Uint(ofp.IPProto, 6)}}, "OFPBMC_BAD_PREREQ"},
			{ofp.RoleRequest{}, "OFPBFC_MSG_UNSUP"},
		} {
			err := c.Bundle(t.Context(), append(good[:len(good):len(good)], bad.body)...)
			if !errors.Is(err, ofp.Refusal(bad.want)) {
				t.Errorf("%s: Bundle = %v, want %s", protocols, err, bad.want)
			}
			if n := len(flows(t, c)); n != 0 {
				t.Errorf("%s: %d flows are there after %s, want none", protocols, n, bad.want)
			}
		}
		if err := c.Bundle(t.Context(), good...); err != nil {
			t.Errorf("%s: %v", protocols, err)
		}
		if n := len(flows(t, c)); n != 100 {
			t.Errorf("%s: %d flows are there after the bundle, want 100", protocols, n)
		}
	}
}

// flows are those with our cookie.
func flows(t *testing.T, c *Conn) (all []ofp.Flow) {
	t.Helper()
	parts, err := c.Collect(t.Context(), ofp.AskFlows{FlowFilter: ofp.FlowFilter{Table: ofp.AllTables, Cookie: 9, CookieMask: ^uint64(0)}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		all = append(all, p.(ofp.Flows)...)
	}
	return all
}

func TestOpenVSwitchReadsBackTenThousandFlows(t *testing.T) {
	c := dial(t, nstest.New(t, "switch").NewOVS(t).Bridge(t, "s1", "OpenFlow15"))
	var bodies []ofp.Body
	for i := range uint64(10000) {
		bodies = append(bodies, ofp.FlowMod{Cookie: 9, Match: ofp.Match{ofp.UintMasked(ofp.Metadata, i, 0xffffff)}, Instructions: ofp.Apply(ofp.Output{Port: 1})})
	}
	if err := c.Do(t.Context(), bodies...); err != nil {
		t.Fatal(err)
	}
	seen := map[uint64]bool{}
	for _, f := range flows(t, c) {
		seen[f.Match.Uint(ofp.Metadata)] = true
	}
	if len(seen) != 10000 {
		t.Errorf("%d flows came back, want 10000", len(seen))
	}
}

func TestOpenVSwitchKeepsRolesApart(t *testing.T) {
	socket := nstest.New(t, "switch").NewOVS(t).Bridge(t, "s1", "OpenFlow15")
	first, second := dial(t, socket), dial(t, socket)
	if _, err := first.SetRole(t.Context(), ofp.RolePrimary, 5); err != nil {
		t.Fatal(err)
	}
	if _, err := second.SetRole(t.Context(), ofp.RolePrimary, 4); !errors.Is(err, ofp.Refusal("OFPRRFC_STALE")) {
		t.Errorf("an older generation: %v, want a refusal", err)
	}
	if r, err := second.SetRole(t.Context(), ofp.RolePrimary, 6); err != nil || r.Role != ofp.RolePrimary || r.Generation != 6 {
		t.Errorf("a newer generation: %+v, %v", r, err)
	}
	status, ok := nstest.Receive(t, "Conn.Err", first.Events()).Body.(ofp.RoleStatus)
	if !ok || status.Role != ofp.RoleSecondary || status.Reason != ofp.RoleTaken {
		t.Errorf("the first is told %+v, want that it is secondary now", status)
	}
	if err := first.Do(t.Context(), ofp.FlowMod{}); !errors.Is(err, ofp.Refusal("OFPBRC_IS_SLAVE")) {
		t.Errorf("a secondary's flow-mod: %v, want a refusal", err)
	}
}
