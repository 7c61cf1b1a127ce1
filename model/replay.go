// Package model replays runs of the session engine on the Promela models that are checked beside it, renegotiation and
// failover: SPIN executes a model's own steps along the run and asserts, after each, the same messages and the same end.
package model

import (
	"context"
	_ "embed" // the model
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed renegotiate.pml
var renegotiate string

// NUMBERS and PLACES of the model: how many socketIDs an end may have had, and how many places.
const numbers, places = 15, 16

// The ends of a flow. Of a failover, the server's end is that of the first server; others that may go on are 2, 3, ...
const (
	Client = 0
	Server = 1
)

// An Event is one decision of an end.
type Event struct {
	End    int
	What   string // move, timer, lost, continue, abandon, fail, RSYN, RSYNACK, RACK, RESUME or FAIL
	In     *Message
	Out    []Message
	Before Stand
	After  Stand
}

// A Message is a claim, a RESUME or a FAIL. An end stands at the place that its epoch brought it to: a claim comes from that of
// its Epoch and goes to that of its Seen; a FAIL goes to that of its Epoch.
type Message struct {
	Kind          string
	Epoch, Seen   uint32
	Socket, Quote uint64
	Chain         []uint64
}

// A Stand is how far an end has come.
type Stand struct {
	State        string
	Epoch, Seen  uint32
	Socket, Peer uint64
}

// A script is the Promela process that does what the run did.
type script struct {
	strings.Builder
	numbers map[uint64]int // of socketIDs
	made    [2]int
}

// write puts the run into Promela, as far as the model can count socketIDs.
func write(run []Event) (text string, n int, err error) {
	s := &script{numbers: map[uint64]int{}}
	if len(run) == 0 {
		return "", 0, errors.New("an empty run")
	}
	first := run[0]
	if first.Before.State != "Bound" || first.Before.Epoch != 0 || first.Before.Seen != 0 {
		return "", 0, fmt.Errorf("the run begins with an end that is %+v, want one that is bound and did not move", first.Before)
	}
	s.number(first.End, first.Before.Socket)
	s.number(1-first.End, first.Before.Peer)
	s.WriteString("active proctype replay() {\n\tbool moved;\n\tbegin();\n")
	for n < len(run) && s.event(&run[n]) {
		n++
	}
	s.WriteString("}\n")
	return s.String(), n, nil
}

// number is the model's of a socketID: each end counts its own.
func (s *script) number(end int, socket uint64) int {
	n, known := s.numbers[socket]
	if !known {
		n = end*numbers + s.made[end]
		s.made[end]++
		s.numbers[socket] = n
	}
	return n
}

// renegotiates is false where a failover begins, which is the other model's.
func renegotiates(e *Event) bool {
	return e.What != "RESUME" && (e.What == "move" || e.What == "timer" || e.In != nil) &&
		!slices.Contains([]string{"Blocked", "Asking", "Confirming"}, e.After.State)
}

// event writes what an end did; false where the end has had more socketIDs than the model can count.
func (s *script) event(e *Event) bool {
	if e.What == "timer" && len(e.Out) == 0 {
		return true // of a state that is over, or of a probe, which changes nothing
	}
	if !renegotiates(e) {
		return false
	}
	s.number(e.End, e.After.Socket)
	if s.made[e.End] > numbers {
		return false
	}
	switch e.What {
	case "move":
		fmt.Fprintf(s, "\tmove(%d);\n", e.End)
	case "timer":
		fmt.Fprintf(s, "\tretransmit(%d);\n", e.End)
	default:
		fmt.Fprintf(s, "\thandle(%d, %s);\n", e.End, s.fields(1-e.End, e.In))
	}
	fmt.Fprintf(s, "\tassert(len(net) == %d);\n", len(e.Out)) // sent, no more
	for i := range e.Out {
		m := &e.Out[i]
		kind, rest, _ := strings.Cut(s.fields(e.End, m), ", ")
		fmt.Fprintf(s, "\tassert(net??[%s, %d, %s]);\n", kind, s.to(e.End, m), constant(rest))
		fmt.Fprintf(s, "\tnet??%s, %d, %s;\n", kind, s.to(e.End, m), constant(rest))
	}
	a := &e.After
	fmt.Fprintf(s, "\tassert(e[%d].state == %s && e[%d].sock == %d && e[%d].peerSock == %d && e[%d].epoch == %d && e[%d].seen == %d);\n",
		e.End, a.State, e.End, s.number(e.End, a.Socket), e.End, s.number(1-e.End, a.Peer), e.End, a.Epoch, e.End, a.Seen)
	return true
}

// to is the place that a message of the end goes to.
func (s *script) to(end int, m *Message) int {
	if m.Kind == "FAIL" {
		return (1-end)*places + int(m.Epoch)
	}
	return (1-end)*places + int(m.Seen)
}

// fields are the model's of a message that the end sent. The place of a FAIL's sender does not matter: the code
// answers from where it was asked.
func (s *script) fields(end int, m *Message) string {
	if m.Kind == "FAIL" {
		return fmt.Sprintf("FAIL, e[%d].loc, 0, 0, %d, %d, 0", end, s.number(1-end, m.Socket), s.number(end, m.Quote))
	}
	chain := 0
	for _, id := range m.Chain {
		chain |= 1 << s.number(end, id)
	}
	return fmt.Sprintf("%s, %d, %d, %d, %d, %d, %d", m.Kind, end*places+int(m.Epoch), m.Epoch, m.Seen,
		s.number(end, m.Socket), s.number(1-end, m.Quote), chain)
}

// constant keeps Promela from receiving into what is to be compared.
func constant(fields string) string {
	if at, rest, ok := strings.Cut(fields, ", "); ok && strings.HasPrefix(at, "e[") {
		return "eval(" + at + "), " + rest
	}
	return fields
}

// Replay has SPIN, the program, execute the model along the run, which begins with two ends that are bound and have
// not moved. It returns how many events that were: up to a failover, and the model counts so many socketIDs and no more.
// The error of a run that the model does not follow has SPIN's words and the script.
func Replay(ctx context.Context, spin string, run []Event) (n int, err error) {
	trace, n, err := write(run)
	if err != nil {
		return 0, err
	}
	return n, execute(ctx, spin, map[string]string{"renegotiate.pml": renegotiate, "trace.pml": trace},
		fmt.Sprintf("-DNUMBERS=%d", numbers), "-DLOSSES=255", "renegotiate.pml")
}

// execute has SPIN run a model whose process is a trace. It fails at an assertion, and where the model cannot go on.
func execute(ctx context.Context, spin string, files map[string]string, args ...string) error {
	dir, err := os.MkdirTemp("", "replay-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	script := ""
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return err
		}
		if strings.HasSuffix(name, "trace.pml") {
			script = text
		}
	}
	cmd := exec.CommandContext(ctx, spin, append([]string{"-DTRACE"}, args...)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	said := string(out)
	if err != nil {
		return fmt.Errorf("the model does not follow the code: %w\n%s\n%s", err, said, script)
	}
	if strings.Contains(said, "rror") || strings.Contains(said, "violated") || strings.Contains(said, "timeout") ||
		!strings.Contains(said, "1 process created") {
		return fmt.Errorf("the model does not follow the code:\n%s\n%s", said, script)
	}
	return nil
}
