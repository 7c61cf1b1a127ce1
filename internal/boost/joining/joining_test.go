package joining

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
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
	j := &joiner{Config: Config{Name: "w1", Agent: idle{}, Log: slog.New(slog.DiscardHandler), Announce: func(key []byte) { told = append(told, key) }}}
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
		"w2": {Up: true, Path: tune.Verdict{Rate: 5e6}},
	}}}}
	all := j.load().Trunks
	if p := all[0].Path; p.GetBound() != "loss" || p.GetRate() != 5e6 || p.GetLoss() != 0.001 || p.GetHeld() != 0.25 {
		t.Errorf("to w1: %v", p)
	}
	if all[1].Path != nil {
		t.Errorf("to w2: %v", all[1].Path)
	}
}
