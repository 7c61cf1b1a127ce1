package hostd

import (
	"context"
	"io"
	"net"
	"net/http"
	"os/user"
	"path/filepath"
	"strings"
	"testing"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
	"scaffold.dev/scaffold/internal/tests/safety"
)

// TestNobodyAsksInAnotherUsersName: who asks the host's daemon may say who he is; the controller hears of the user whom
// the kernel names, and of nobody where there is none.
func TestNobodyAsksInAnotherUsersName(t *testing.T) {
	safety.Test(t, safety.Door)
	t.Parallel()
	said := make(chan []string, 2)
	x := newChangeover(func(r *http.Request) (*http.Response, error) {
		said <- r.Header.Values(api.LocalUser)
		return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
	})
	proxy := (&daemon{control: x.c}).adminProxy()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	for endpoint, want := range map[string]string{"unix:" + filepath.Join(t.TempDir(), "s"): me.Username, "http://127.0.0.1:0": ""} {
		l, err := api.Listen(endpoint)
		if err != nil {
			t.Fatal(err)
		}
		go api.Serve(ctx, proxy, l) // ends with the test
		client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, l.Addr().Network(), l.Addr().String())
		}}}
		r, err := http.NewRequestWithContext(ctx, "POST", "http://host"+apiv1connect.AdminDrainProcedure, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(api.LocalUser, "mallory")
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if got := strings.Join(<-said, ","); got != want {
			t.Errorf("on %s the controller hears of the user %q, want %q", endpoint, got, want)
		}
		client.CloseIdleConnections()
	}
}
