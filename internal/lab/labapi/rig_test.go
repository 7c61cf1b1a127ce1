package labapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/lab/labapi"
	labv1 "scaffold.dev/scaffold/internal/lab/v1"
	"scaffold.dev/scaffold/internal/lab/v1/labv1connect"
	"scaffold.dev/scaffold/internal/tests/nstest"
)

// network is a lab of a few nodes.
const network = `
nodes:
  ctl: controller
  r1: {kind: router, service: true}
  c1: host
  s1: {kind: host, programs: [{name: sleeper, run: sleep 1001}]}
links:
  - [c1, r1]
  - {ends: [s1, r1], delay: 1ms, seed: 7}
timeline:
  - {at: 0s, do: "exec s1: echo hello"}
`

// A rig is a server with ways to ask it.
type rig struct {
	*testing.T
	lab labv1connect.LabClient
	api *labapi.Server
	url string
}

func serve(t *testing.T, cfg labapi.Config) *rig {
	t.Helper()
	if cfg.Log == nil {
		cfg.Log = t.Logf
	}
	api := labapi.New(cfg)
	server := httptest.NewServer(api)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		if err := api.Finish(true); err != nil {
			t.Error(err)
		}
	})
	return &rig{t, labv1connect.NewLabClient(server.Client(), server.URL), api, server.URL}
}

// up is a server with a lab that is up.
func up(t *testing.T, source, name string) (*rig, string) {
	t.Helper()
	nstest.Root(t)
	r, name := serve(t, labapi.Config{}), nstest.LabNamed(name)
	raise(t, r.lab, source, name)
	return r, name
}

func raise(t *testing.T, c labv1connect.LabClient, source, name string) {
	t.Helper()
	events, err := c.Up(t.Context(), &labv1.LabFile{Source: source, Name: name})
	if all := received(t, events, err); all[len(all)-1].GetLab().GetName() != name {
		t.Fatalf("up: %v", all)
	}
}

// received is a whole stream.
func received[M any](t *testing.T, stream *connect.ServerStreamForClient[M], err error) (all []*M) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for stream.Receive() {
		all = append(all, stream.Msg())
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// post asks as programs do that know nothing but HTTP and JSON.
func (r *rig) post(call, body string) (status int, text []byte) {
	r.Helper()
	return r.send("POST", call, "application/json", "", body)
}

func (r *rig) send(method, call, kind, token, body string) (status int, text []byte) {
	r.Helper()
	q, err := http.NewRequestWithContext(r.Context(), method, r.url+labapi.Path+call, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	for name, value := range map[string]string{"Content-Type": kind, "Authorization": token} {
		if value != "" {
			q.Header.Set(name, value)
		}
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		r.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err = io.ReadAll(answer.Body); err != nil {
		r.Fatal(err)
	}
	return answer.StatusCode, text
}

// left are the namespaces of a lab.
func left(name string) []string {
	all, _ := filepath.Glob("/run/netns/scaf-" + name + "-*")
	return all
}
