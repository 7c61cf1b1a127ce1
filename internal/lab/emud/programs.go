package emud

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/forward"
	"scaffold.dev/scaffold/emu/load"
	"scaffold.dev/scaffold/internal/router/emurouter"
)

// A Setting is what the program of a router is made from.
type Setting struct {
	Router     string            // its name
	Parameters map[string]string // as the lab file has them
	Forward    forward.Config    // its addresses and ports, for programs that forward
}

// A Maker makes the program of a router. Unknown parameters are errors.
type Maker func(Setting) (emu.Program, error)

// Programs are what routers may run, by name.
type Programs map[string]Maker

// Shipped are the programs of the lab's own engine.
func Shipped() Programs {
	return Programs{"forward": newForward, "scaffold": newScaffold, "load": newLoad}
}

// newForward makes an IP router.
func newForward(s Setting) (emu.Program, error) {
	for key, value := range s.Parameters {
		if key != "icmp-rate" {
			return nil, fmt.Errorf("unknown parameter %q; expected icmp-rate", key)
		}
		rate, err := strconv.Atoi(value)
		if err != nil {
			return nil, fmt.Errorf("icmp-rate %q; expected how many ICMP errors it may send in a second, -1 for none", value)
		}
		s.Forward.ICMPRate = rate
	}
	return forward.New(s.Forward)
}

// newScaffold makes one of Scaffold's routers, which the controller drives.
func newScaffold(s Setting) (emu.Program, error) {
	cfg, err := emurouter.Parse(s.Router, s.Parameters)
	if err != nil {
		return nil, err
	}
	return emurouter.New(cfg)
}

// newLoad makes an IP router that marks packets with the load of its links.
func newLoad(s Setting) (emu.Program, error) {
	var interval time.Duration
	for key, value := range s.Parameters {
		var err error
		if key != "interval" {
			return nil, fmt.Errorf("unknown parameter %q; expected interval", key)
		}
		if interval, err = time.ParseDuration(value); err != nil {
			return nil, fmt.Errorf("interval %q; expected a time such as 200ms", value)
		}
	}
	return load.New(s.Forward, interval)
}

// names lists them, for messages.
func (p Programs) names() string {
	return strings.Join(slices.Sorted(maps.Keys(p)), ", ")
}

func (e *engine) program(r *Router, name string, parameters map[string]string) (emu.Program, error) {
	maker, ok := e.programs[name]
	if !ok {
		return nil, fmt.Errorf("router %s: unknown program %q; this engine has %s", r.Name, name, e.programs.names())
	}
	program, err := maker(Setting{Router: r.Name, Parameters: parameters, Forward: e.config(r)})
	if err != nil {
		return nil, fmt.Errorf("router %s: program %s: %w", r.Name, name, err)
	}
	return program, nil
}
