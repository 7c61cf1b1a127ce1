package setup

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
)

type kind string

const (
	kindFile kind = "file"
	kindLink kind = "link"
	kindDir  kind = "directory"
	kindRun  kind = "run"
)

// A Step is one thing that an installation does.
type Step struct {
	kind   kind
	path   string
	text   []byte
	mode   fs.FileMode
	target string   // of a link
	run    []string // a command
	after  []string // the command to run when the file has been taken away
	config bool
	edited bool // a configuration file that somebody else has written or edited: he keeps it
	taken  bool // the file is somebody else's, and replaced
	done   bool // nothing is to be done
	why    string
}

func file(path string, text []byte, why string) Step {
	return Step{kind: kindFile, path: path, text: text, mode: 0o644, why: why}
}

func command(why string, args ...string) Step { return Step{kind: kindRun, run: args, why: why} }

// String is the step as a dry run shows it.
func (s Step) String() string {
	switch {
	case s.done:
		return fmt.Sprintf("keep    %s: it is there already", s.path)
	case s.kind == kindRun:
		return fmt.Sprintf("run     %s: %s", strings.Join(s.run, " "), s.why)
	case s.kind == kindLink:
		return fmt.Sprintf("link    %s -> %s: %s", s.path, s.target, s.why)
	case s.taken:
		return fmt.Sprintf("replace %s: %s", s.path, s.why)
	}
	return fmt.Sprintf("write   %s: %s", s.path, s.why)
}

// Text is what a file is going to hold; "" for one that holds no text, or stays.
func (s Step) Text() string {
	if s.kind != kindFile || s.done || s.mode&0o111 != 0 {
		return ""
	}
	return string(s.text)
}

// settled reports whether a step has nothing to do.
func (m *Machine) settled(s Step) bool {
	switch s.kind {
	case kindFile:
		b, err := m.hold(s.path)
		return err == nil && b != nil && b.Link == "" && string(b.Text) == string(s.text)
	case kindLink:
		target, err := os.Readlink(m.at(s.path))
		return err == nil && target == s.target
	}
	return false
}

// take does the step.
func (m *Machine) take(s Step) error {
	switch s.kind {
	case kindFile:
		return m.write(s.path, s.text, s.mode)
	case kindLink:
		return m.link(s.path, s.target)
	}
	if m.Run == nil {
		return nil
	}
	return m.Run(s.run...)
}

// entry is what the manifest says of the step.
func (s Step) entry(b *before) Entry {
	e := Entry{Path: s.path, Kind: s.kind, Config: s.config, After: s.after}
	if s.taken {
		e.Before = b
	}
	if e.Sum = sum(s.text); s.kind == kindLink {
		e.Sum = s.target
	}
	return e
}
