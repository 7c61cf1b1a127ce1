package labapi_test

import (
	"testing"

	"scaffold.dev/scaffold/internal/emud"
	"scaffold.dev/scaffold/internal/labapi"
	"scaffold.dev/scaffold/internal/nstest"
)

const ring = `
nodes: {a: host, e0: emulated, e1: emulated}
links: [[a, e0], {ends: [e0, e1], delay: 1ms}]
`

func TestHandlersOfEmulatedRoutersPassThrough(t *testing.T) {
	nstest.Root(t)
	r, name := serve(t, labapi.Config{}), unique("ring")
	if status, text := r.ask("POST", "/v1/labs", labapi.FileRequest{Source: ring, Name: name}); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	at := "/v1/labs/" + name + "/routers"
	var all []emud.RouterState
	if r.get("GET", at, nil, &all); len(all) != 2 || all[1].Name != "e1" || all[1].Program != "forward" {
		t.Errorf("%+v", all)
	}
	var handlers []emud.HandlerState
	if r.get("GET", at+"/e1/handlers", nil, &handlers); len(handlers) == 0 || handlers[0].Name == "" {
		t.Errorf("%+v", handlers)
	}
	var v labapi.Value
	r.get("PUT", at+"/e1/handlers/icmp-rate", labapi.Value{Value: "9"}, &v)
	if r.get("GET", at+"/e1/handlers/icmp-rate", nil, &v); v.Value != "9" {
		t.Errorf("%+v", v)
	}
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/e9", "", 404},
		{"GET", "/e9/handlers", "", 404},
		{"GET", "/e1/handlers/nothing", "", 404},
		{"PUT", "/e1/handlers/icmp-rate", `{}`, 400},
		{"PUT", "/e1/handlers/icmp-rate", `{"value": 3}`, 400},
		{"PUT", "/e1/handlers/icmp-rate", `{"value": "many"}`, 400},
		{"PUT", "/e1/handlers/drops", `{"value": "0"}`, 400},
		{"PUT", "/e1/program", `{"program": "nothing"}`, 400},
	} {
		if status, text := r.ask(c.method, at+c.path, c.body); status != c.status {
			t.Errorf("%s %s %s: %d %s, want %d", c.method, c.path, c.body, status, text, c.status)
		}
	}
}
