package emubench

import (
	"encoding/json"
	"fmt"
	"io"
	"net/netip"
	"runtime"
	"runtime/debug"

	"scaffold.dev/scaffold/emu"
)

// An EngineConfig is a chain of routers inside an engine, between two interfaces.
type EngineConfig struct {
	Ends    [2]emu.End    `json:"ends"`
	Routers int           `json:"routers"`
	Mode    Mode          `json:"mode"`
	Links   [2]emu.Params `json:"links"` // of every link, there and back
}

// EngineState is what the engine says when it is asked.
type EngineState struct {
	Links   [][2]emu.LineStats   `json:"links"`
	Routers []emu.RouterCounters `json:"routers"`
}

// RunEngine is the engine's process: it reads its configuration, says a line when its interfaces are there, and for
// each line that it reads then, parameters of the first link or nothing, says its state. It ends with its input.
func RunEngine(in io.Reader, out io.Writer) error {
	lines, say := json.NewDecoder(in), json.NewEncoder(out)
	var cfg EngineConfig
	if err := lines.Decode(&cfg); err != nil {
		return fmt.Errorf("read the engine's configuration: %w", err)
	}
	runtime.GOMAXPROCS(runtime.NumCPU() + 2) // as in a lab: threads of the engine keep theirs
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(512 << 20)
	n := emu.New(emu.Options{})
	defer n.Close()
	if err := cfg.build(n); err != nil {
		return err
	}
	if err := n.Start(); err != nil {
		return err
	}
	if err := say.Encode("ready"); err != nil {
		return err
	}
	for {
		var set *[2]emu.Params
		if err := lines.Decode(&set); err != nil {
			return nil // whoever asks has gone
		}
		if set != nil {
			if err := n.Links()[0].Set(*set); err != nil {
				return err
			}
		}
		state, err := stateOf(n)
		if err != nil {
			return err
		}
		if err := say.Encode(state); err != nil {
			return err
		}
	}
}

// build makes the chain.
func (c EngineConfig) build(n *emu.Net) error {
	from, err := n.Edge(c.Ends[0])
	if err != nil {
		return err
	}
	to, err := n.Edge(c.Ends[1])
	if err != nil {
		return err
	}
	return row{from: from, to: to, routers: c.Routers, mode: c.Mode, links: c.Links, beyond: []netip.Prefix{network(c.Routers)}}.join(n)
}

// stateOf asks a running network for its counters.
func stateOf(n *emu.Net) (s EngineState, err error) {
	for _, l := range n.Links() {
		stats, err := l.Stats()
		if err != nil {
			return s, err
		}
		s.Links = append(s.Links, stats)
	}
	for _, r := range n.Routers() {
		err := n.Do(r, func() { s.Routers = append(s.Routers, r.Counters()) })
		if err != nil {
			return s, err
		}
	}
	return s, nil
}
