package emud

import (
	"testing"

	"scaffold.dev/scaffold/emu/forward"
	emudv1 "scaffold.dev/scaffold/internal/lab/emud/v1"
)

// modeOf is how a router finds ways.
func modeOf(t *testing.T, e *engine, name string) (mode string) {
	t.Helper()
	r := e.routers[name]
	if err := e.net.Do(r.Router, func() { mode = r.Program().(*forward.Forwarder).Mode() }); err != nil {
		t.Fatal(err)
	}
	return mode
}

func TestRoutersFindTheirWaysAsTheyAreTold(t *testing.T) {
	cfg := square()
	for i := range cfg.Routers[:3] {
		cfg.Routers[i].FIB = classFIB
	}
	e := running(t, cfg, Shipped())
	if a, b := modeOf(t, e, "r0"), modeOf(t, e, "r3"); a != "class" || b != "lpm" {
		t.Errorf("modes %s, %s", a, b)
	}
	q := &emudv1.SwapProgramRequest{Router: "r0", Program: "forward", Parameters: map[string]string{"icmp-rate": "10"}}
	if _, err := (server{engine: e}).SwapProgram(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if mode := modeOf(t, e, "r0"); mode != "class" || routesOf(t, e, "r0") != whole {
		t.Errorf("after the program was replaced: mode %s, routes %s", mode, routesOf(t, e, "r0"))
	}
}
