package session

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scaffold.dev/scaffold/sid"
	"scaffold.dev/scaffold/wire"
)

// script writes a run of two engines as a Promela process that does the same with the model's own
// inlines and asserts, after each event, the same messages and the same ends.
type script struct {
	strings.Builder
	w *world
	k Key
}

const modelNumbers, modelPlaces = 15, 16 // NUMBERS and PLACES of model/renegotiate.pml

// socket is the model's number of a socketID: each end counts its own.
func (s *script) socket(id sid.SocketID) int {
	for _, h := range s.w.hosts {
		for i, made := range h.ids {
			if made == id {
				return h.n*modelNumbers + i
			}
		}
	}
	panic("a socketID that nobody made")
}

func (s *script) place(ip netip.Addr) int {
	l := uint64(sid.LocatorOf(ip))
	return int(l>>8&0xff-1)*modelPlaces + int(l&0xff-1)
}

// message is the model's form of a datagram's only claim.
func (s *script) message(d *datagram) (kind string, fields string) {
	m, _ := wire.Parse(d.bytes)
	if f, ok := m.(wire.FlowFail); ok {
		n := s.place(d.from) / modelPlaces // its place does not matter: the code answers from where it was asked
		return "FAIL", fmt.Sprintf("e[%d].loc, 0, 0, %d, %d, 0", n, s.socket(f.Flows[0].Socket), s.socket(f.Flows[0].Quote))
	}
	r := m.(wire.Renegotiate)
	c, chain := r.Claims[0], 0
	for _, id := range c.Chain {
		chain |= 1 << s.socket(id)
	}
	return strings.ReplaceAll(r.Kind.String(), "-", ""), fmt.Sprintf("%d, %d, %d, %d, %d, %d",
		s.place(d.from), c.Epoch, c.Seen, s.socket(c.Socket), s.socket(c.Quote), chain)
}

// constant keeps Promela from receiving into what is to be compared.
func constant(fields string) string {
	if at, rest, ok := strings.Cut(fields, ", "); ok && strings.HasPrefix(at, "e[") {
		return "eval(" + at + "), " + rest
	}
	return fields
}

func (s *script) event(ev event) {
	switch n := ev.host.n; {
	case ev.what == "timer" && len(ev.out) == 0:
		return // a wish of before, passed over
	case ev.what == "move":
		fmt.Fprintf(s, "\tmove(%d);\n", n)
	case ev.what == "timer":
		fmt.Fprintf(s, "\tretransmit(%d);\n", n)
	default:
		kind, fields := s.message(ev.in)
		fmt.Fprintf(s, "\thandle(%d, %s, %s);\n", n, kind, fields)
	}
	fmt.Fprintf(s, "\tassert(len(net) == %d);\n", len(ev.out)) // sent, no more
	for _, d := range ev.out {
		kind, fields := s.message(&d)
		fmt.Fprintf(s, "\tassert(net??[%s, %d, %s]);\n", kind, s.place(d.to), constant(fields))
		fmt.Fprintf(s, "\tnet??%s, %d, %s;\n", kind, s.place(d.to), constant(fields))
	}
	for i, h := range s.w.hosts {
		f := h.flows[Key{s.k.Stable, Role(i + 1)}]
		fmt.Fprintf(s, "\tassert(e[%d].state == %v && e[%d].sock == %d && e[%d].peerSock == %d && e[%d].epoch == %d && e[%d].seen == %d);\n",
			i, f.state, i, s.socket(f.Local.Socket), i, s.socket(f.Peer.Socket), i, f.epoch, i, f.seen)
	}
}

// record runs two engines by lot, short enough for the model's numbers.
func record(t *testing.T, seed uint64) string {
	lot := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t, 2)
	s := &script{w: w, k: w.connect(w.hosts[0], w.hosts[1], Flow{})}
	fmt.Fprint(s, "active proctype replay() {\n\tbool moved;\n\tbegin();\n")
	w.log = s.event
	for moves := 0; moves < 6; {
		w.now = w.now.Add(time.Millisecond)
		switch n := lot.IntN(8); {
		case n < 2:
			moves++
			w.move(w.hosts[n])
		case len(w.pool) == 0:
			w.tick()
		default:
			i := lot.IntN(len(w.pool))
			d := w.pool[i]
			if n != 2 {
				w.pool = append(w.pool[:i:i], w.pool[i+1:]...)
			}
			if n != 3 {
				w.deliver(d)
			}
		}
	}
	w.heal()
	fmt.Fprint(s, "}\n")
	return s.String()
}

// TestRunsReplayOnTheModel: SPIN executes the model along runs of the code.
func TestRunsReplayOnTheModel(t *testing.T) {
	spin, err := exec.LookPath("spin")
	if err != nil {
		t.Skip("needs spin: scripts/packages.sh model")
	}
	model, err := os.ReadFile("../../../model/renegotiate.pml")
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(10) {
		dir := t.TempDir()
		trace := record(t, seed)
		for name, text := range map[string]string{"renegotiate.pml": string(model), "trace.pml": trace} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(spin, "-DTRACE", fmt.Sprintf("-DNUMBERS=%d", modelNumbers), "-DLOSSES=255", "renegotiate.pml")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil || strings.Contains(string(out), "rror") || strings.Contains(string(out), "violated") || strings.Contains(string(out), "timeout") || !strings.Contains(string(out), "1 process created") {
			t.Fatalf("seed %d: the model does not follow the code: %v\n%s\n%s", seed, err, out, trace)
		}
	}
}
