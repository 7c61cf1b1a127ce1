package hostd

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/host/mobility"
	"scaffold.dev/scaffold/sid"
)

// An oracle is a controller that knows that others serve.
type oracle struct {
	apiv1connect.UnimplementedAgentHandler
	asked []*apiv1.OthersRequest
}

func (o *oracle) Others(_ context.Context, r *connect.Request[apiv1.OthersRequest]) (*connect.Response[apiv1.OthersResponse], error) {
	o.asked = append(o.asked, r.Msg)
	return connect.NewResponse(&apiv1.OthersResponse{There: true}), nil
}

// RoundTrip answers without a network.
func (o *oracle) RoundTrip(r *http.Request) (*http.Response, error) {
	_, handler := apiv1connect.NewAgentHandler(o)
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w.Result(), nil
}

func TestTheControllerIsAskedWhetherOthersServe(t *testing.T) {
	d := &daemon{}
	d.control = newControl(d)
	question := mobility.Question{Triple: sid.Triple{Service: webID, Proto: sid.TCP, Port: 80}, Besides: locator2}
	if _, err := (inquiries{d}).Others(context.Background(), question); err == nil {
		t.Error("an answer without a way to the controller")
	}
	var o oracle
	d.control.client = &http.Client{Transport: &o}
	there, err := inquiries{d}.Others(context.Background(), question)
	if err != nil || !there {
		t.Fatalf("others serve: %v, %v", there, err)
	}
	if q := o.asked[0]; q.Port != 80 || q.Proto != uint32(sid.TCP) || sid.Locator(q.Besides) != locator2 || q.Suffix != uint64(webID.Suffix) || q.Ss != webID.SS {
		t.Errorf("the controller was asked %v", q)
	}
}
