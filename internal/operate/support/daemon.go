package support

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// pages are what every daemon serves.
var pages = map[string]string{
	"metrics.txt":    "/metrics",
	"healthz.json":   "/healthz",
	"goroutines.txt": "/debug/pprof/goroutine?debug=2", // of daemons that serve profiles
	"heap.pprof":     "/debug/pprof/heap",
}

// calls are methods of the API, with what they are asked.
var calls = map[string]map[string][2]string{
	"controld": {
		"status.json":   {"Admin/GetStatus", "{}"},
		"services.json": {"Admin/ListServices", "{}"},
		"hosts.json":    {"Admin/ListHosts", "{}"},
		"routers.json":  {"Admin/ListRouters", "{}"},
		"switches.json": {"Switches/ListSwitches", "{}"},
	},
	"hostd": {
		"status.json":        {"Local/GetHostStatus", "{}"},
		"registrations.json": {"Local/ListRegistrations", "{}"},
	},
	"routerd": {},
}

// FlowsOf is what a host's daemon tells of its flows: addresses of peers, and processes.
func FlowsOf(dir string, client *http.Client, base string) Source {
	return Source{dir + "/flows.json", call(client, base, "Local/ListFlows", `{"limit":5000}`)}
}

// Daemon is what a daemon of a kind (controld, hostd, routerd) tells of itself.
func Daemon(kind, dir string, client *http.Client, base string) (all []Source) {
	for name, path := range pages {
		all = append(all, Source{dir + "/" + name, get(client, base+path)})
	}
	for name, c := range calls[kind] {
		all = append(all, Source{dir + "/" + name, call(client, base, c[0], c[1])})
	}
	if kind == "routerd" {
		all = append(all, Source{dir + "/status.json", get(client, base+"/status")})
	}
	return all
}

func get(client *http.Client, url string) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		return do(ctx, client, http.MethodGet, url, nil)
	}
}

// call is a method by Connect's JSON over HTTP POST.
func call(client *http.Client, base, method, request string) func(context.Context) ([]byte, error) {
	return func(ctx context.Context) ([]byte, error) {
		return do(ctx, client, http.MethodPost, base+"/scaffold.v1."+method, []byte(request))
	}
}

func do(ctx context.Context, client *http.Client, method, url string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 4*sourceMost))
	if err == nil && resp.StatusCode != http.StatusOK && !strings.HasSuffix(url, "/healthz") {
		return nil, fmt.Errorf("%s: %.200s", resp.Status, bytes.TrimSpace(text))
	}
	return text, err
}
