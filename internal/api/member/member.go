package member

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/versions"
)

// joined is what the answers to a host and to a router that are let in have in common.
type joined interface {
	GetNetwork() string
	GetNetworkId() string
	GetProtocol() uint32
	GetControllers() *apiv1.Controllers
}

// An Order is what a controller says on a stream; J is its first word to one that is let in.
type Order[J any] interface {
	GetJoined() J
	GetRefused() *apiv1.Refused
	GetControllers() *apiv1.Controllers
}

// A Sender is the sending half of a stream.
type Sender[R any] interface {
	Send(R) error
	CloseRequest() error
}

// A Stream is one call of the service Agent, as [connect.BidiStreamForClient] is.
type Stream[R, O any] interface {
	Sender[R]
	Receive() (O, error)
	CloseResponse() error
}

// A Member joins and holds sessions, one at a time. R are its reports, O the controller's orders, J the answer to its
// join. Functions are called from the goroutine of Hold.
type Member[R any, O Order[J], J interface {
	comparable
	joined
}] struct {
	Who         string           // "this host", for errors
	Controllers *api.Controllers // nil: the way to one is found otherwise, and whichever is reached is followed

	Open    func(ctx context.Context, client *http.Client, base string) Stream[R, O]
	Epoch   func(J) uint64 // of the leader: one of a lower epoch than the last is refused; nil: any is taken
	Refused func(*apiv1.Refused)
	Joined  func(context.Context, *Session[R], J) error // an error ends the session
	Order   func(O) error                               // likewise
	Parted  func(*Session[R])                           // after Joined, whatever came of it

	network network
}

// Join says the first word on a stream and returns the answer of a controller that lets the member in; a [*Refusal] is
// one of another kind.
func Join[R any, O Order[J], J interface {
	comparable
	joined
}](stream interface {
	Send(R) error
	Receive() (O, error)
}, who string, ask R) (j J, err error) {
	defer func() {
		if denied(err) {
			err = final(who, err)
		}
	}()
	if err := stream.Send(ask); err != nil && !errors.Is(err, io.EOF) { // at io.EOF the answer says why
		return j, err
	}
	first, err := stream.Receive()
	if err != nil {
		return j, err
	}
	if no := first.GetRefused(); no != nil {
		return j, refusal(who, no)
	}
	var none J
	if j = first.GetJoined(); j == none {
		return none, ErrProtocol
	}
	if _, err := versions.Agent().Agree(who, "the controller", versions.Answered(j.GetProtocol())); err != nil {
		return none, final(who, err)
	}
	return j, nil
}

// Hold joins by the client, which leads to the controller at the endpoint, and obeys it until the session ends or ctx
// does.
func (m *Member[R, O, J]) Hold(ctx context.Context, endpoint string, client *http.Client, ask func(context.Context) (R, error)) (joined bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream := m.Open(ctx, client, api.BaseURL())
	defer stream.CloseResponse() //nolint:errcheck // how it ended has been told
	report, err := ask(ctx)
	if err != nil {
		return false, err
	}
	j, err := Join[R, O, J](stream, m.Who, report)
	if err == nil {
		err = m.follow(endpoint, j)
	}
	if err != nil {
		m.refer(err)
		return false, err
	}
	return true, m.obey(ctx, cancel, stream, j)
}

// follow takes a controller for the one that leads.
func (m *Member[R, O, J]) follow(endpoint string, j J) error {
	if m.Controllers == nil {
		return nil
	}
	var epoch uint64
	if m.Epoch != nil {
		epoch = m.Epoch(j)
	}
	if err := m.network.believe(m.Controllers, j, epoch); err != nil {
		return err
	}
	m.Controllers.Joined(endpoint)
	m.Controllers.Tell(j.GetControllers().GetEndpoints())
	return nil
}

// refer takes the word of one that does not lead of who does.
func (m *Member[R, O, J]) refer(err error) {
	var no *Refusal
	switch {
	case !errors.As(err, &no) || no.Said == nil:
	case !no.Said.Standby:
		m.refused(no.Said)
	case m.Controllers != nil:
		m.Controllers.Refer(no.Said.Leader, no.Said.Controllers.GetEndpoints())
	}
}

func (m *Member[R, O, J]) refused(no *apiv1.Refused) {
	if m.Refused != nil {
		m.Refused(no)
	}
}

// obey runs a session that has joined.
func (m *Member[R, O, J]) obey(ctx context.Context, cancel context.CancelFunc, stream Stream[R, O], j J) error {
	s := newSession[R](cancel)
	written := make(chan struct{})
	go func() {
		defer close(written)
		defer cancel()
		s.write(ctx, stream)
	}()
	defer func() {
		cancel()
		<-written
		close(s.ended)
		m.Parted(s)
	}()
	if err := m.Joined(ctx, s, j); err != nil {
		return err
	}
	for {
		order, err := stream.Receive()
		if err != nil && s.again.Load() {
			return errAgain
		}
		if errors.Is(err, io.EOF) {
			return ErrClosed
		}
		if err != nil {
			return err
		}
		if no := order.GetRefused(); no != nil {
			m.refused(no)
			return fmt.Errorf("the controller ended the session: %s", no.Reason)
		}
		if all := order.GetControllers(); all != nil {
			if m.Controllers != nil {
				m.Controllers.Tell(all.Endpoints)
			}
			continue
		}
		if err := m.Order(order); err != nil {
			return err
		}
	}
}
