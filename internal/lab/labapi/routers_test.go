package labapi_test

import (
	"fmt"
	"testing"

	labv1 "scaffold.dev/scaffold/internal/lab/v1"
)

const ring = `
nodes: {a: host, e0: emulated, e1: emulated}
links: [[a, e0], {ends: [e0, e1], delay: 1ms}]
`

func TestHandlersOfEmulatedRoutersPassThrough(t *testing.T) {
	r, name := up(t, ring, "ring")
	all, err := r.lab.ListRouters(t.Context(), &labv1.LabName{Lab: name})
	if err != nil || len(all.Routers) != 2 || all.Routers[1].Name != "e1" || all.Routers[1].Program != "forward" {
		t.Errorf("%v, %v", all, err)
	}
	handlers, err := r.lab.ListHandlers(t.Context(), &labv1.RouterName{Lab: name, Router: "e1"})
	if err != nil || len(handlers.Handlers) == 0 || handlers.Handlers[0].Name == "" {
		t.Errorf("%v, %v", handlers, err)
	}
	nine := "9"
	if _, err := r.lab.SetHandler(t.Context(), &labv1.SetHandlerRequest{Lab: name, Router: "e1", Handler: "icmp-rate", Value: &nine}); err != nil {
		t.Error(err)
	}
	v, err := r.lab.GetHandler(t.Context(), &labv1.GetHandlerRequest{Lab: name, Router: "e1", Handler: "icmp-rate"})
	if err != nil || v.Value != "9" {
		t.Errorf("%v, %v", v, err)
	}
	of := func(router, rest string) string {
		return fmt.Sprintf(`{"lab": %q, "router": %q%s}`, name, router, rest)
	}
	r.refuse(
		question{"GetRouter", of("e9", ""), 404, "e9"},
		question{"ListHandlers", of("e9", ""), 404, "e9"},
		question{"GetHandler", of("e1", `, "handler": "nothing"`), 404, "nothing"},
		question{"SetHandler", of("e1", `, "handler": "icmp-rate"`), 400, "expected what to write"},
		question{"SetHandler", of("e1", `, "handler": "icmp-rate", "value": 3`), 400, "invalid value for string"},
		question{"SetHandler", of("e1", `, "handler": "icmp-rate", "value": "many"`), 400, "many"},
		question{"SetHandler", of("e1", `, "handler": "drops", "value": "0"`), 400, "can only be read"},
		question{"SwapProgram", of("e1", `, "program": "nothing"`), 400, "nothing"},
	)
}
