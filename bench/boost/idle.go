package boost

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"time"

	"scaffold.dev/scaffold/bench"
	"scaffold.dev/scaffold/bench/process"
)

// How many sessions there are that say nothing.
const (
	idleSessions  = 1000
	crowdSessions = 10_000
)

// idleFor is how long they have said nothing when it is looked what they take.
const idleFor = 2 * time.Second

// opens is how many sessions begin at a time.
const opens = 32

// idle measures what a session that says nothing takes at each agent.
func (b *rig) idle(ctx context.Context) error {
	var near, far []float64
	for range b.runs() {
		grown, err := b.grown(ctx, idleSessions)
		if err != nil {
			return err
		}
		near, far = append(near, grown[0]), append(far, grown[1])
	}
	what := fmt.Sprintf("memory of each of %d idle sessions, at the ", idleSessions)
	b.add(bench.NewRow(what+"client's agent", "KiB", "<= 80", "", near), bench.NewRow(what+"server's agent", "KiB", "<= 80", "", far))
	return b.agents.RestartWith(ctx, "")
}

// grown is by how much both agents' memory grows with that many sessions, for each that is carried in KiB. The agents are new ones:
// what one has had it does not give back.
func (b *rig) grown(ctx context.Context, n int) (grown [2]float64, err error) {
	if err := b.agents.RestartWith(ctx, memoryFor(n)); err != nil {
		return grown, err
	}
	if err := bench.Pause(ctx, idleFor); err != nil { // what starting took is given back
		return grown, err
	}
	before, err := b.memories(ctx)
	if err != nil {
		return grown, err
	}
	c, err := b.openMany(ctx, ownBoosted, n)
	if err != nil {
		return grown, err
	}
	defer c.close()
	carried, err := b.boostedOf(ctx, n)
	if err != nil {
		return grown, err
	}
	if err := bench.Pause(ctx, idleFor); err != nil {
		return grown, err
	}
	after, err := b.memories(ctx)
	for i := range grown {
		grown[i] = (after[i] - before[i]) / float64(carried) / 1024
	}
	return grown, err
}

// memoryFor is the line of agents' files for that many sessions: each has 80 KiB from its beginning, for what may arrive, and
// where that is not to be had it passes. Memory that nothing has come to is not in RAM.
func memoryFor(sessions int) string { return fmt.Sprintf("memory: %d\n", sessions/8) }

// boostedOf counts the sessions that are carried. On a busy machine some pass: an agent that has not had a processor for 200
// ms takes none. It is an error where most do.
func (b *rig) boostedOf(ctx context.Context, n int) (int, error) {
	out, err := b.lab.Output(ctx, "y", "ss", "-HtnO", "state", "established", "dport", "=", fmt.Sprint(ownBoosted))
	if err != nil {
		return 0, err
	}
	got := strings.Count(string(out), "\n")
	if got < n {
		b.note("%d of %d sessions are carried, the others pass", got, n)
	}
	if got < n/2 {
		return 0, fmt.Errorf("%d of %d connections are boosted; the client's agent says:\n%s", got, n, b.agents.Log("x"))
	}
	return got, nil
}

// memories are what each agent takes, in bytes: what its processes have in RAM, and what their node's sockets hold of the
// kernel's.
func (b *rig) memories(ctx context.Context) (bytes [2]float64, err error) {
	for i, name := range []string{"x", "y"} {
		out, err := b.lab.Output(ctx, name, "ss", "-HtmnO")
		if err != nil {
			return bytes, fmt.Errorf("ss: %w: %s", err, out)
		}
		keeper := b.agents.Keeper(name)
		bytes[i] = socketMemory(string(out)) + process.Resident(keeper)
		for _, pid := range process.Children(keeper) {
			bytes[i] += process.Resident(pid)
		}
	}
	return bytes, nil
}

// socketMemory reads what ss says of sockets: what is received and not read (r), reserved (f), to be sent (w), of options (o)
// and waiting to be looked at (bl). What is on its way through the machine (t) is in w; rb and tb are limits.
func socketMemory(text string) (bytes float64) {
	for word := range strings.FieldsSeq(text) {
		list, ok := strings.CutPrefix(word, "skmem:(")
		if !ok {
			continue
		}
		for part := range strings.SplitSeq(strings.TrimSuffix(list, ")"), ",") {
			var n float64
			for _, of := range []string{"r%f", "f%f", "w%f", "o%f", "bl%f"} {
				if found, _ := fmt.Sscanf(part, of, &n); found == 1 {
					bytes += n
				}
			}
		}
	}
	return bytes
}

// many are sessions that were opened, each with one question, and say nothing since.
type many struct {
	server *exec.Cmd
	conns  []net.Conn
	ms     []float64 // how long each took to its answer
}

func (m *many) close() {
	for _, c := range m.conns {
		c.Close()
	}
	m.server.Process.Kill()
	m.server.Wait() //nolint:errcheck // killed
}

// openMany opens that many sessions to a port, some at a time.
func (b *rig) openMany(ctx context.Context, port uint16, n int) (m *many, err error) {
	server, err := b.answering(port)
	if err != nil {
		return nil, err
	}
	m = &many{server: server}
	var mu sync.Mutex
	var all sync.WaitGroup
	places := make(chan struct{}, n)
	for range n {
		places <- struct{}{}
	}
	close(places)
	for range opens {
		all.Go(func() {
			for range places {
				c, took, failed := b.open(port)
				mu.Lock()
				if failed == nil {
					m.conns, m.ms = append(m.conns, c), append(m.ms, float64(took)/1e6)
				} else if err == nil {
					err = fmt.Errorf("session %d of %d: %w", len(m.conns)+1, n, failed)
				}
				stop := err != nil || ctx.Err() != nil
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	all.Wait()
	if err = errors.Join(ctx.Err(), err); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// answering is a process of its own that answers at the server's port: both ends of all sessions are more open files than
// one may have.
func (b *rig) answering(port uint16) (*exec.Cmd, error) {
	cmd, err := bench.AgentCommand("answer", "--listen", b.server(port).String())
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := b.lab.Start("s1", cmd); err != nil {
		return nil, err
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		cmd.Process.Kill()
		cmd.Wait() //nolint:errcheck // killed
		return nil, fmt.Errorf("the server of many sessions said %q: %w", line, err)
	}
	return cmd, nil
}

// open is a session that has had an answer.
func (b *rig) open(port uint16) (net.Conn, time.Duration, error) {
	began := time.Now()
	c, err := b.agents.Dial(port)
	if err != nil {
		return nil, 0, err
	}
	if err := exchangeByte(c); err != nil {
		c.Close()
		return nil, 0, err
	}
	return c, time.Since(began), nil
}
