package member

import (
	"context"
	"io"
	"net/http"
	"sync"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// A fake is a member with a controller that says what the test wants, without a network between them.
type fake struct {
	m      *Member[*apiv1.RouterReport, *apiv1.RouterOrder, *apiv1.RouterJoined]
	ctx    context.Context // of the stream
	orders chan any        // *apiv1.RouterOrder, or an error that ends the stream; closed: it ends well
	sent   chan *apiv1.RouterReport
	half   chan struct{} // closed when the member has said its last
	once   sync.Once

	took     []*apiv1.RouterOrder
	refusals []*apiv1.Refused
	session  *Session[*apiv1.RouterReport]
	parted   int
}

func newFake(all *api.Controllers) *fake {
	f := &fake{orders: make(chan any, 16), sent: make(chan *apiv1.RouterReport, 2*outLimit), half: make(chan struct{})}
	f.m = &Member[*apiv1.RouterReport, *apiv1.RouterOrder, *apiv1.RouterJoined]{
		Who: "this router", Controllers: all, Epoch: (*apiv1.RouterJoined).GetEpoch,
		Open: func(ctx context.Context, _ *http.Client, _ string) Stream[*apiv1.RouterReport, *apiv1.RouterOrder] {
			f.ctx = ctx
			return f
		},
		Refused: func(no *apiv1.Refused) { f.refusals = append(f.refusals, no) },
		Joined: func(_ context.Context, s *Session[*apiv1.RouterReport], _ *apiv1.RouterJoined) error {
			f.session = s
			return nil
		},
		Order:  func(o *apiv1.RouterOrder) error { f.took = append(f.took, o); return nil },
		Parted: func(*Session[*apiv1.RouterReport]) { f.parted++ },
	}
	return f
}

// Send is the stream's.
func (f *fake) Send(r *apiv1.RouterReport) error {
	select {
	case f.sent <- r:
		return nil
	case <-f.ctx.Done():
		return f.ctx.Err()
	}
}

// Receive is the stream's.
func (f *fake) Receive() (*apiv1.RouterOrder, error) {
	select {
	case o, ok := <-f.orders:
		if !ok {
			return nil, io.EOF
		}
		if err, is := o.(error); is {
			return nil, err
		}
		return o.(*apiv1.RouterOrder), nil
	case <-f.ctx.Done():
		return nil, f.ctx.Err()
	}
}

// CloseRequest is the stream's.
func (f *fake) CloseRequest() error { f.once.Do(func() { close(f.half) }); return nil }

// CloseResponse is the stream's.
func (f *fake) CloseResponse() error { return nil }

// says has the controller say so much.
func (f *fake) says(all ...any) {
	for _, o := range all {
		f.orders <- o
	}
}

// hold is an attempt at the first controller that is known.
func (f *fake) hold(ctx context.Context) (joined bool, err error) {
	return f.m.Hold(ctx, "http://127.0.0.1:1", &http.Client{}, func(context.Context) (*apiv1.RouterReport, error) {
		return &apiv1.RouterReport{Report: &apiv1.RouterReport_Join{Join: &apiv1.RouterJoin{Name: "r1"}}}, nil
	})
}

func accepted(j *apiv1.RouterJoined) *apiv1.RouterOrder {
	return &apiv1.RouterOrder{Order: &apiv1.RouterOrder_Joined{Joined: j}}
}

func no(r *apiv1.Refused) *apiv1.RouterOrder {
	return &apiv1.RouterOrder{Order: &apiv1.RouterOrder_Refused{Refused: r}}
}
