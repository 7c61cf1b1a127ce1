package labapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"scaffold.dev/scaffold/internal/labapi"
	"scaffold.dev/scaffold/internal/nstest"
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

// unique is a name under which what a killed run leaves is found, and removed.
func unique(name string) string { return nstest.LabName() + "_" + name }

// A rig is a server with a way to ask it.
type rig struct {
	*testing.T
	api *labapi.Server
	url string
}

func serve(t *testing.T, cfg labapi.Config) *rig {
	t.Helper()
	cfg.Log = t.Logf
	api := labapi.New(cfg)
	server := httptest.NewServer(api)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		if err := api.Finish(true); err != nil {
			t.Error(err)
		}
	})
	return &rig{t, api, server.URL}
}

// up is a server with a lab that is up.
func up(t *testing.T, name string) (*rig, string) {
	t.Helper()
	nstest.Root(t)
	r, name := serve(t, labapi.Config{}), unique(name)
	if status, text := r.ask("POST", "/v1/labs", labapi.FileRequest{Source: network, Name: name}); status != 200 || !bytes.Contains(text, []byte(`"lab":`)) {
		t.Fatalf("up: %d\n%s", status, text)
	}
	return r, name
}

// request makes one; a body that is no text is sent as JSON.
func (r *rig) request(ctx context.Context, method, path string, body any) *http.Request {
	r.Helper()
	text, ok := body.(string)
	if !ok && body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			r.Fatal(err)
		}
		text = string(raw)
	}
	q, err := http.NewRequestWithContext(ctx, method, r.url+path, bytes.NewReader([]byte(text)))
	if err != nil {
		r.Fatal(err)
	}
	return q
}

func (r *rig) ask(method, path string, body any) (status int, text []byte) {
	r.Helper()
	return r.send(r.request(r.Context(), method, path, body))
}

func (r *rig) send(q *http.Request) (status int, text []byte) {
	r.Helper()
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

// get asks and reads a good answer into v.
func (r *rig) get(method, path string, body, v any) {
	r.Helper()
	status, text := r.ask(method, path, body)
	if status != 200 {
		r.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	if err := json.Unmarshal(text, v); err != nil {
		r.Fatalf("%s %s: %v in %s", method, path, err, text)
	}
}

// lines begins a request and gives the lines of its answer; leave goes away in its midst.
func (r *rig) lines(method, path string, body any) (next func() string, leave func()) {
	r.Helper()
	ctx, leave := context.WithCancel(r.Context())
	r.Cleanup(leave)
	answer, err := http.DefaultClient.Do(r.request(ctx, method, path, body))
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(func() { answer.Body.Close() })
	if answer.StatusCode != 200 {
		text, _ := io.ReadAll(answer.Body)
		r.Fatalf("%s %s: %d %s", method, path, answer.StatusCode, text)
	}
	lines := bufio.NewScanner(answer.Body)
	return func() string {
		lines.Scan()
		return lines.Text()
	}, leave
}

// left are the namespaces of a lab.
func left(name string) []string {
	all, _ := filepath.Glob("/run/netns/scaf-" + name + "-*")
	return all
}
