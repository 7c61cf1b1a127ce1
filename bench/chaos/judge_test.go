package chaos

import (
	"testing"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/bench/checked"
)

const second = int64(1e9)

// flow is one of a client on c1 and a server on s1.
func flow(client, server checked.Note) *bench.Flow {
	client.Client, client.Node, server.Node = true, "c1", "s1"
	return &bench.Flow{ID: 1, Proto: "tcp", Ends: map[string]*bench.End{
		"c1": {Note: client, Ended: client.Kind == checked.Ended},
		"s1": {Note: server, Ended: server.Kind == checked.Ended},
	}}
}

func did(do string, at int64) []Happening {
	return []Happening{{Event: Event{Do: do}, Began: at, Ended: at}}
}

func TestVerdicts(t *testing.T) {
	const solo = "[fd5c::2]:7"
	over := func(err, peer string) checked.Note {
		return checked.Note{Kind: checked.Ended, At: 100 * second, Err: err, Peer: peer, Sent: 10, Received: 20}
	}
	served := checked.Note{Kind: checked.Ended, At: 100 * second, Sent: 20, Received: 10}
	short := served
	short.Received = 9
	goesOn := checked.Note{Kind: checked.Progress}
	for _, c := range []struct {
		name           string
		client, server checked.Note
		done           []Happening
		now            int64
		want           verdict
	}{
		{"in peace", over("", ""), served, nil, 100 * second, fine},
		{"still open", checked.Note{Kind: checked.Progress}, goesOn, nil, 100 * second, open},
		{"a byte is missing", over("", ""), short, nil, 100 * second, condemned},
		{"the server has not said yet", over("", ""), goesOn, nil, 101 * second, open},
		{"the server never says", over("", ""), goesOn, nil, 120 * second, condemned},
		{"the server was killed just then", over("", ""), goesOn, did("crash s1", 101*second), 101 * second, fine},
		{"reset, and nothing happened", over("reset", ""), goesOn, nil, 100 * second, condemned},
		{"reset by a killed server", over("reset", ""), goesOn, did("crash s1", 99*second), 100 * second, excused},
		{"reset by another server's death", over("reset", ""), goesOn, did("crash s2", 99*second), 100 * second, condemned},
		{"reset before the server was killed", over("reset", ""), goesOn, did("crash s1", 101*second), 101 * second, condemned},
		{"reset long after", over("reset", ""), goesOn, did("crash s1", 90*second), 100 * second, condemned},
		{"reset by a lost link where others serve", over("reset", ""), goesOn, did("unplug s1 rs", 99*second), 100 * second, excused},
		{"reset by a lost link where nobody else serves", over("reset", solo), goesOn, did("unplug s1 rs", 99*second), 100 * second, condemned},
		{"reset by the client's move", over("reset", ""), goesOn, did("unplug c1 ra", 99*second), 100 * second, condemned},
		{"looks complete", over(bench.Truncated, ""), goesOn, did("crash s1", 99*second), 100 * second, condemned},
	} {
		if got, what := judge(flow(c.client, c.server), solo, c.done, c.now); got != c.want {
			t.Errorf("%s: verdict %d, want %d (%s)", c.name, got, c.want, what)
		}
	}
}

func TestADatagramThatComesTwiceIsOdd(t *testing.T) {
	f := flow(checked.Note{Kind: checked.Ended, Duplicates: 1}, checked.Note{})
	f.Proto = "udp"
	if v, _ := judge(f, "", nil, 0); v != condemned {
		t.Errorf("verdict %d", v)
	}
}
