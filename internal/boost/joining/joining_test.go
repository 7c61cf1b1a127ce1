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
