package processes

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"scaffold.dev/scaffold/internal/lab/file"
	"scaffold.dev/scaffold/internal/lab/poll"
)

// atOnce is how long a program is watched that somebody starts by hand: one that does not understand its command line or
// finds its port taken ends within it.
const atOnce = 500 * time.Millisecond

// An Ended program ended right after it was started.
type Ended struct {
	Name string // NODE/PROGRAM
	How  string // as exec says it
	Log  string // the end of it
	Done bool   // with exit code 0: perhaps that was all it had to do
}

func (e *Ended) Error() string {
	return fmt.Sprintf("%s ended at once (%s); the end of its log:\n%s", e.Name, e.How, e.Log)
}

// Stays is an [Ended] if something that the action started is gone already. Other actions start nothing.
func (p *Processes) Stays(ctx context.Context, a file.Action) error {
	if a.Verb != "start" && a.Verb != "restart" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, atOnce)
	defer cancel()
	var gone *Ended
	_ = poll.Until(ctx, func() error { // it runs until then: that is well
		if gone = p.gone(); gone == nil {
			return fmt.Errorf("all run")
		}
		return nil
	})
	if gone == nil {
		return nil
	}
	return gone
}

// gone is what ended of all that this process started; nil while all run. A program that went into the background ended
// and runs.
func (p *Processes) gone() *Ended {
	for _, n := range p.Plan.Nodes {
		for _, name := range n.Startable() {
			how, ended := p.exits.of(n.Name + "/" + name)
			if ended && !p.Running(n.Name, name) {
				return &Ended{n.Name + "/" + name, how, p.LogTail(n.Name, name), how == "exit status 0"}
			}
		}
	}
	return nil
}

// Exited says how a process ended that this process started, with the end of its log.
func (p *Processes) Exited(node, name string) error {
	how, ok := p.exits.of(node + "/" + name)
	if !ok {
		return nil
	}
	return fmt.Errorf("%s/%s ended (%s); the end of its log:\n%s", node, name, how, p.LogTail(node, name))
}

// tailLines is how much of a log an error shows.
const tailLines = 8

// LogTail is the end of a log, for an error.
func (p *Processes) LogTail(node, name string) string {
	text, _ := os.ReadFile(p.Dir.Log(node, name))
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	lines = lines[max(0, len(lines)-tailLines):]
	return "    " + strings.Join(lines, "\n    ")
}
