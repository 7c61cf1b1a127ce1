package lead

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/controller/store"
)

// TestAControllerThatStandsBySendsAnOrderToTheNextLeader: one with a number, and only to one that knows what that is.
func TestAControllerThatStandsBySendsAnOrderToTheNextLeader(t *testing.T) {
	t.Parallel()
	const change, look = apiv1connect.AdminSetWeightProcedure, apiv1connect.AdminGetServiceProcedure
	for name, c := range map[string]struct {
		method, number string
		first, next    bool // know numbers
		want           string
		asked          int
	}{
		"both know it":      {change, api.NewOrderID(), true, true, "took {}", 2},
		"the next does not": {change, api.NewOrderID(), true, false, "not known whether it did this", 1},
		"the first did not": {change, api.NewOrderID(), false, true, "stream error", 1},
		"it has none":       {change, "", true, true, "stream error", 1},
		"it only looks":     {look, "", false, false, "took {}", 2},
	} {
		var c1 *Process
		asked := 0
		ctx, stop := context.WithCancel(t.Context())
		door, err := api.Listen("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		at := "http://" + door.Addr().String()
		go api.Serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if asked++; asked > 1 {
				_, _ = io.WriteString(w, "took "+string(body))
				return
			}
			c1.Peers.Set([]store.Candidate{{Name: "c3", API: []string{at}, Once: c.next}}, nil)
			panic(http.ErrAbortHandler) // the stream is cut
		}), door) // ends with stop
		c1 = process(&elections{}, nil)
		c1.Peers.Set([]store.Candidate{{Name: "c2", API: []string{at}, Once: c.first}}, nil)
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, c.method, strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(api.OrderID, c.number)
		c1.handOn().ServeHTTP(w, r)
		stop()
		if said := w.Body.String(); !strings.Contains(said, c.want) || asked != c.asked {
			t.Errorf("%s: %q after %d attempts, want %q after %d", name, said, asked, c.want, c.asked)
		}
	}
}
