package file

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// A trace is actions with their times in a file of its own, one a line: TIME ACTION. Empty lines, and those that
// begin with #, say nothing.

// replay reads the actions of a trace, from a time of the timeline on.
func (r *reader) replay(f *File, n *yaml.Node, name string, from time.Duration) (steps []*Step) {
	text, err := r.attached(f, name)
	if err != nil {
		r.errorf(n.Line, "replay: %v", err)
		return nil
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for number := 1; lines.Scan(); number++ {
		at, a, err := parseTraced(lines.Text())
		switch {
		case err != nil:
			r.errorf(n.Line, "replay: %s:%d: %v", name, number, err)
		case a != nil:
			steps = append(steps, &Step{Line: n.Line, At: from + at, Action: *a})
		}
	}
	if err := lines.Err(); err != nil {
		r.errorf(n.Line, "replay: %s: %v", name, err)
	}
	return steps
}

// parseTraced reads a line of a trace; nil for one that says nothing.
func parseTraced(line string) (time.Duration, *Action, error) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] == '#' {
		return 0, nil, nil
	}
	when, action, _ := strings.Cut(line, " ")
	if _, err := strconv.ParseFloat(when, 64); err == nil {
		when += "s"
	}
	at, err := time.ParseDuration(when)
	if err != nil || at < 0 || at > maxAt {
		return 0, nil, fmt.Errorf("%q: expected TIME ACTION, such as 12.5 fail r7 r8, times from 0 to %v", line, maxAt)
	}
	a, err := ParseAction(action)
	return at, &a, err
}

// maxAt is the latest time of a step.
const maxAt = 24 * time.Hour
