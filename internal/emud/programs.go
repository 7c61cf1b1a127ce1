package emud

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"scaffold.dev/scaffold/emu"
)

// Programs are what routers may run, by name.
type Programs map[string]emu.Factory

// names lists them, for messages.
func (p Programs) names() string {
	return strings.Join(slices.Sorted(maps.Keys(p)), ", ")
}

func (p Programs) make(name string, parameters map[string]string) (emu.Program, error) {
	factory, ok := p[name]
	if !ok {
		return nil, fmt.Errorf("unknown program %q; this engine has %s", name, p.names())
	}
	program, err := factory(parameters)
	if err != nil {
		return nil, fmt.Errorf("program %s: %w", name, err)
	}
	return program, nil
}
