package joining

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"testing"

	"scaffold.dev/scaffold/internal/api/member"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/versions"
	"scaffold.dev/scaffold/internal/boost/agent"
	"scaffold.dev/scaffold/internal/boost/announce"
	"scaffold.dev/scaffold/internal/boost/trunk"
	"scaffold.dev/scaffold/internal/core/tune"
)

// A stream is a controller that lets the agent in, and is gone then.
type stream struct{ orders []*apiv1.BoostOrder }

func (*stream) Send(*apiv1.BoostReport) error { return nil }
func (*stream) CloseRequest() error           { return nil }
func (*stream) CloseResponse() error          { return nil }

func (s *stream) Receive() (*apiv1.BoostOrder, error) {
	if len(s.orders) == 0 {
		return nil, io.EOF
	}
	next := s.orders[0]
	s.orders = s.orders[1:]
	return next, nil
}

// idle is an agent that carries nothing.
type idle struct{}

func (idle) Tell([]Peer, []agent.Lane) error               { return nil }
func (idle) Drain(bool)                                    {}
func (idle) Trunks() map[string]trunk.Status               { return nil }
func (idle) EachSession(func(string, trunk.SessionStatus)) {}
func (idle) Load() float64                                 { return 0 }
func (idle) Stops() []uint32                               { return nil }

// noKey is an agent whose key nobody looks at.
type noKey struct{}

func (noKey) Key() ed25519.PublicKey        { return make([]byte, ed25519.PublicKeySize) }
func (noKey) Take(ed25519.PrivateKey) error { return nil }

// hold is a session of the joiner with a controller that gives it this key.
func hold(t *testing.T, j *joiner, key []byte) {
	t.Helper()
	m := j.member()
	m.Open = func(context.Context, *http.Client, string) member.Stream[*apiv1.BoostReport, *apiv1.BoostOrder] {
		joined := &apiv1.BoostJoined{Network: "n", Protocol: versions.Agent().To, AnnounceKey: key}
		return &stream{[]*apiv1.BoostOrder{{Order: &apiv1.BoostOrder_Joined{Joined: joined}}}}
	}
	if joined, err := m.Hold(t.Context(), "", nil, j.ask); !joined || !errors.Is(err, member.ErrClosed) {
		t.Fatalf("joined %v, %v", joined, err)
	}
	j.reports.Wait()
}

func TestTheAgentAnnouncesItselfByTheKeyOfItsStream(t *testing.T) {
	var told [][]byte
	j := &joiner{Config: Config{Name: "w1", Doors: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1"), netip.MustParseAddrPort("192.0.2.2:1")}, Agent: idle{}, Keys: noKey{}, Log: slog.New(slog.DiscardHandler), Announce: func(key []byte) { told = append(told, key) }}}
	first, second := bytes.Repeat([]byte{1}, announce.KeyLen), bytes.Repeat([]byte{2}, announce.KeyLen)
	for _, key := range [][]byte{first, nil, first[1:], append(first[:announce.KeyLen:announce.KeyLen], 0), second} {
		hold(t, j, key)
	}
	if len(told) != 2 || !bytes.Equal(told[0], first) || !bytes.Equal(told[1], second) {
		t.Errorf("told %x", told)
	}
	j.Announce = nil
	hold(t, j, first)
}

// still is an agent whose machine forwards nothing of IPv4.
type still struct{ idle }

func (still) Stops() []uint32 { return []uint32{4} }

func TestTheAgentSaysWhatItsMachineDoesNotForward(t *testing.T) {
	j := &joiner{Config: Config{Doors: []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1")}, Agent: still{}, Keys: noKey{}}}
	ask, err := j.ask(t.Context())
	if err != nil || !slices.Equal(ask.GetJoin().Stops, []uint32{4}) || !slices.Equal(j.load().Stops, []uint32{4}) {
		t.Errorf("%v, %v, %v", ask.GetJoin(), j.load(), err)
	}
}

// What another agent is follows from how many addresses it has said: one of before says none.
func TestWhereAnotherAgentIsIsRead(t *testing.T) {
	key := make([]byte, 32)
	peers, _, err := decode(&apiv1.BoostLanes{Agents: []*apiv1.BoostPeer{
		{Name: "now", Door: "192.0.2.1:1", Key: key, Doors: []string{"192.0.2.1:1", "[2001:db8::1]:2"}},
		{Name: "one", Door: "192.0.2.2:1", Key: key, Doors: []string{"192.0.2.2:1"}},
		{Name: "before", Door: "192.0.2.3:1", Key: key},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"now 192.0.2.1:1 [[2001:db8::1]:2] false", "one 192.0.2.2:1 [] false", "before 192.0.2.3:1 [] true"} {
		if p := peers[i]; fmt.Sprint(p.Name, " ", p.Door, " ", p.More, " ", p.Former) != want {
			t.Errorf("%+v, want %s", p, want)
		}
	}
	for _, wrong := range []*apiv1.BoostPeer{{Door: "here", Key: key}, {Door: "192.0.2.1:1"}, {Door: "192.0.2.1:1", Key: key, Doors: []string{"192.0.2.1:1", "there"}}} {
		if _, _, err := decode(&apiv1.BoostLanes{Agents: []*apiv1.BoostPeer{wrong}}); err == nil {
			t.Errorf("%v is read", wrong)
		}
	}
	var ask, _ = (&joiner{Config: Config{Agent: idle{}, Keys: noKey{}, Doors: []netip.AddrPort{peers[0].Door, peers[0].More[0]}}}).ask(t.Context())
	if j := ask.GetJoin(); j.Door != "192.0.2.1:1" || !slices.Equal(j.Doors, []string{"192.0.2.1:1", "[2001:db8::1]:2"}) {
		t.Errorf("it says of itself %v", j)
	}
}

// between is an agent with trunks.
type between struct {
	idle
	trunks map[string]trunk.Status
}

func (a between) Trunks() map[string]trunk.Status { return a.trunks }

// A controller hears what of the path binds, and nothing where that is not clear.
func TestWhatOfAPathBindsIsTold(t *testing.T) {
	j := &joiner{Config: Config{Agent: between{trunks: map[string]trunk.Status{
		"w1": {Up: true, Path: tune.Verdict{Cause: tune.ChanceLoss, Rate: 5e6, Loss: 0.001, Held: 0.25}},
		"w2": {Up: true, Path: tune.Verdict{Rate: 5e6}, Paths: []trunk.PathStatus{{Why: "silent", Sent: 7, Path: tune.Verdict{Cause: tune.LinkFull}}}},
	}}}}
	all := j.load().Trunks
	if p := all[0].Path; p.GetBound() != "loss" || p.GetRate() != 5e6 || p.GetLoss() != 0.001 || p.GetHeld() != 0.25 {
		t.Errorf("to w1: %v", p)
	}
	if all[1].Path != nil {
		t.Errorf("to w2: %v", all[1].Path)
	}
	if w := all[1].Ways; len(w) != 1 || w[0].Why != "silent" || w[0].Sent != 7 || w[0].Path.GetBound() != "full" {
		t.Errorf("the path to w2: %v", w)
	}
}
