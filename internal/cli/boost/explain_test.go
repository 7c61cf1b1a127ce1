package boost

import (
	"strings"
	"testing"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/cli/output"
)

// Each binding is told with the machine it is about, and with what to do; in the other direction with the other machine.
func TestEachBindingSaysWhereAndWhatToDo(t *testing.T) {
	agents := []*apiv1.BoostAgent{
		{Name: "east-1", Load: 0.93, Trunks: []*apiv1.BoostTrunk{{Agent: "west-1", Up: true, RttUs: 50_000, Sent: 1000, Resent: 1}}},
		{Name: "west-1", Load: 0.12, Trunks: []*apiv1.BoostTrunk{{Agent: "east-1"}}},
	}
	for _, c := range []struct {
		sent, received string
		want           []string
	}{
		{"source", "receiver", []string{"the client binds: agent east-1 has read all", "program at the client", "the client binds: agent east-1 has bytes for it"}},
		{"receiver", "source", []string{"the server binds: agent west-1 has bytes for it", "program at the server", "the server binds: agent west-1 has read all"}},
		{"path", "path", []string{"agent east-1 has bytes that no connection to west-1 takes (there and back in 50ms); 0.1% of all bytes", "agent west-1 has bytes that no connection to east-1 takes\n"}},
		{"near agent", "far agent", []string{"the processor of agent east-1 binds: it has used 93%", "the processor of agent west-1 binds: it has used 12%", "scaffold boost site set"}},
		{"far agent", "near agent", []string{"the processor of agent west-1", "the processor of agent east-1"}},
		{"near agent's memory", "far agent's memory", []string{"full of bytes on their way between it and west-1", "raise memory in the file of east-1", "raise memory in the file of west-1"}},
		{"far agent's memory", "near agent's memory", []string{"full of bytes on their way between it and east-1"}},
		{"", "what a later version knows", []string{"client to server, 1 MB/s: nothing binds", "server to client, 2 MB/s: nothing binds"}},
	} {
		var out strings.Builder
		all := &apiv1.ListBoostSessionsResponse{Total: 3, Sessions: []*apiv1.BoostSession{{Client: "192.0.2.1:1", Server: "192.0.2.2:80", Near: "east-1", Far: "west-1", SendRate: 1_000_000, ReceiveRate: 2_000_000, SentBound: c.sent, ReceivedBound: c.received}}}
		if err := output.Draw(&out, func(t *output.Table) { drawReasons(t, all, agents) }); err != nil {
			t.Fatal(err)
		}
		for _, want := range append(c.want, "192.0.2.1:1 to 192.0.2.2:80, entry none, carried by east-1 and west-1", "and 2 more") {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q and %q: no %q in\n%s", c.sent, c.received, want, out.String())
			}
		}
	}
}

// How a session comes to its agents is said where that is not the entry's ordinary way.
func TestARewrittenSessionIsNamed(t *testing.T) {
	for rewritten, want := range map[bool]string{true: "entry files (rewrite: by rules of its own in the switches), carried by", false: "entry files, carried by"} {
		var out strings.Builder
		all := &apiv1.ListBoostSessionsResponse{Sessions: []*apiv1.BoostSession{{Entry: "files", Near: "east-1", Far: "west-1", Rewritten: rewritten}}}
		if err := output.Draw(&out, func(t *output.Table) { drawReasons(t, all, nil) }); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("%v: no %q in %s", rewritten, want, out.String())
		}
	}
}

// A direction that is hardly used has no end that is to be looked at.
func TestWhoHasNothingToSayIsNoTrouble(t *testing.T) {

	var out strings.Builder
	if err := output.Draw(&out, func(t *output.Table) {
		drawReason(t, "server to client", 10, "source", nil, side{"server", "west-1", nil}, side{"client", "east-1", nil}, "far", "near")
	}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "  server to client, 10 B/s: agent west-1 has read all that the server sent\n" {
		t.Errorf("%q", got)
	}
}

// What of the path binds is told with its number, the agent where something is to be done, and what; in a list in short.
func TestEachCauseOfThePathSaysWhereAndWhatToDo(t *testing.T) {
	agents := []*apiv1.BoostAgent{{Name: "east-1", Trunks: []*apiv1.BoostTrunk{{Agent: "west-1", Up: true, RttUs: 50_000, Sent: 1000, Resent: 1}}}, {Name: "west-1"}}
	for _, c := range []struct {
		path *apiv1.BoostPath
		want []string
		list string
	}{
		{&apiv1.BoostPath{Bound: "full", Rate: 93_000_000}, []string{"the path is full: it carries 93 MB/s from agent east-1 to west-1 (there and back in 50ms); 0.1% of all", "a path that carries more"}, "path: full"},
		{&apiv1.BoostPath{Bound: "others", Rate: 5_000_000}, []string{"others' traffic fills the path: beside it agent east-1 sends 5 MB/s to west-1", "share or weight in the file of east-1"}, "path: others"},
		{&apiv1.BoostPath{Bound: "loss", Rate: 5_000_000, Loss: 0.0012}, []string{"loss by chance binds: 0.12% of what agent east-1 sends to west-1", "CUBIC slows down to 5 MB/s", "have BBR at east-1: modprobe tcp_bbr", "raise connections in its file"}, "path: loss"},
		{&apiv1.BoostPath{Bound: "limit", Rate: 5_000_000}, []string{"the limit of agent east-1 binds: it sends 5 MB/s to west-1", "raise limit in the file of east-1"}, "path: limit"},
		{&apiv1.BoostPath{Bound: "flow limit", Rate: 5_000_000, Connections: 32}, []string{"something on the way limits each connection: 32 carry 5 MB/s from agent east-1 to west-1, each about as much", "raise connections in the file of east-1"}, "path: flow limit"},
		{&apiv1.BoostPath{Bound: "send buffer", Held: 0.83}, []string{"the socket buffers of agent east-1 bind", "west-1 up for 83% of the time", "net.ipv4.tcp_wmem at east-1"}, "path: send buffer"},
		{&apiv1.BoostPath{Bound: "receive buffer", Held: 0.83}, []string{"the socket buffers of agent west-1 bind: they hold what east-1 sends to it up for 83%", "net.ipv4.tcp_rmem at west-1", "reload"}, "path: receive buffer"},
		{&apiv1.BoostPath{Bound: "what a later version knows"}, []string{"the path binds: agent east-1 has bytes"}, "path: what a later version knows"},
		{nil, []string{"the path binds: agent east-1 has bytes"}, "path"},
	} {
		all := &apiv1.ListBoostSessionsResponse{Total: 1, Sessions: []*apiv1.BoostSession{{Near: "east-1", Far: "west-1", SendRate: 1_000_000, SentBound: "path", SentPath: c.path, ReceivedBound: "source"}}}
		var out, list strings.Builder
		if err := output.Draw(&out, func(t *output.Table) { drawReasons(t, all, agents) }); err != nil {
			t.Fatal(err)
		}
		if err := output.Draw(&list, func(t *output.Table) { drawSessions(t, all) }); err != nil {
			t.Fatal(err)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%v: no %q in\n%s", c.path, want, out.String())
			}
		}
		if !strings.Contains(list.String(), c.list+"  ") {
			t.Errorf("no %q in\n%s", c.list, list.String())
		}
	}
}
