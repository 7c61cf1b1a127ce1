// Policer is a router program for emulated networks: an IP router that lets each sender through at no more than a rate.
// Its binary is the scaffold command with that program in it:
//
//	go build -o policer . && sudo ./policer lab up lab.yaml
//
// It lives in a Go module of its own, as yours would.
package main

import (
	"fmt"

	"scaffold.dev/scaffold/emu"
	"scaffold.dev/scaffold/emu/forward"
	"scaffold.dev/scaffold/emu/run"
)

func main() { run.Main(map[string]run.Maker{"policer": newProgram}) }

// What a policer takes by default.
const (
	usualRate  = 10_000_000 // bit/s
	usualBurst = 64_000     // bytes
)

// newProgram makes a policer of what a lab file says: {name: policer, rate: 2Mbit, burst: 32KB}.
func newProgram(s run.Setting) (emu.Program, error) {
	rate, burst := uint64(usualRate), uint64(usualBurst)
	for key, value := range s.Parameters {
		var err error
		switch key {
		case "rate":
			err = set(&rate, value, emu.ParseRate)
		case "burst":
			err = set(&burst, value, emu.ParseBytes)
		default:
			err = fmt.Errorf("unknown parameter; expected rate or burst")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
	}
	f, err := forward.New(s.Forward)
	if err != nil {
		return nil, err
	}
	return newPolicer(rate, burst, f), nil
}
