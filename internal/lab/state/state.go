package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Phases of a lab, as written in its state.
const (
	Starting = "starting"
	Up       = "up"
	Running  = "running" // `lab run`: gone with its process
	Stopping = "stopping"
)

// A State is what a lab writes down before it makes anything: enough to remove all of it.
type State struct {
	Name     string            `json:"name"`
	Phase    string            `json:"phase"`
	Owner    int               `json:"owner"` // process that changed the phase last
	Path     string            `json:"file"`
	Source   string            `json:"source"`
	Attached map[string][]byte `json:"attached,omitempty"` // files that the source names
	Plane    string            `json:"plane"`              // of the source, or what the command said
	Binary   string            `json:"binary"`
	Nodes    []string          `json:"nodes"` // with the management network's
	Cgroup   string            `json:"cgroup"`
}

// Write replaces the state file at once, so that a crash leaves the old or the new.
func (d Dir) Write(s *State) error {
	if err := os.MkdirAll(d.Path(), 0o755); err != nil {
		return fmt.Errorf("state of lab %s: %w", d.Lab, err)
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	next := d.state() + ".new"
	if err := os.WriteFile(next, text, 0o644); err != nil {
		return fmt.Errorf("state of lab %s: %w", d.Lab, err)
	}
	return os.Rename(next, d.state())
}

// Read returns nil where there is no such lab.
func (d Dir) Read() (*State, error) {
	text, err := os.ReadFile(d.state())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("state of lab %s: %w", d.Lab, err)
	}
	s := &State{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("state of lab %s: %s: %w", d.Lab, d.state(), err)
	}
	return s, nil
}

// Names lists the labs that have state, up or left over.
func Names(base string) (labs []string, err error) {
	entries, err := os.ReadDir(base)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			labs = append(labs, e.Name())
		}
	}
	return labs, err
}
