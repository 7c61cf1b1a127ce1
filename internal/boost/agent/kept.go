package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"scaffold.dev/scaffold/internal/boost/keeper"
	"scaffold.dev/scaffold/internal/boost/memory"
	"scaffold.dev/scaffold/internal/boost/trunk"
)

// Keep is what outlives this process: the next one finds what it holds.
type Keep interface {
	Hold(key string, value []byte, fds ...int) error
	Note(key string, value []byte) error
	Release(key string) error
}

// Keys of what is held of another agent: the memory of the trunk to it, and its sessions' connections.
func trunkKey(agent string) string { return "trunk/" + agent }

func sessionKey(agent string, session uint64) string {
	return fmt.Sprintf("session/%s/%x", agent, session)
}

// Sessions counts the connections to end hosts that were found.
func Sessions(all []keeper.Found) (n int) {
	for _, f := range all {
		if strings.HasPrefix(f.Key, "session/") {
			n++
		}
	}
	return n
}

// keptTrunk is what there is to know of a trunk's memory.
type keptTrunk struct {
	Bytes int
	Peer  uint64 // incarnation of the other agent's worker
}

// A keeping holds what is of one trunk.
type keeping struct {
	keep  Keep
	agent string
	bytes int
}

func (k *keeping) Hold(s trunk.Kept, c *net.TCPConn) error {
	value, err := json.Marshal(s)
	if err != nil {
		return err
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	fail := raw.Control(func(fd uintptr) { err = k.keep.Hold(sessionKey(k.agent, s.Open.Session), value, int(fd)) })
	return errors.Join(fail, err)
}

// Note has no error: where the keeper is gone this process ends.
func (k *keeping) Note(s trunk.Kept) {
	if value, err := json.Marshal(s); err == nil {
		_ = k.keep.Note(sessionKey(k.agent, s.Open.Session), value)
	}
}

func (k *keeping) Release(session uint64) { _ = k.keep.Release(sessionKey(k.agent, session)) }

func (k *keeping) Met(incarnation uint64) {
	if value, err := json.Marshal(keptTrunk{k.bytes, incarnation}); err == nil {
		_ = k.keep.Note(trunkKey(k.agent), value)
	}
}

// A legacy is what a process before this one had with another agent.
type legacy struct {
	keptTrunk
	memory   *os.File // nil: there is none, and no session can go on
	sessions []trunk.Found
}

// legacies sorts what was found by agents. What cannot be read is let go.
func legacies(all []keeper.Found, keep Keep) (found map[string]*legacy, errs []error) {
	found = map[string]*legacy{}
	for _, f := range all {
		kind, rest, _ := strings.Cut(f.Key, "/")
		agent, _, _ := strings.Cut(rest, "/")
		l := found[agent]
		if l == nil {
			l = &legacy{}
		}
		var err error
		switch kind {
		case "trunk":
			err = l.takeMemory(f)
		case "session":
			err = l.takeSession(f)
		default:
			continue // somebody else's
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("what an agent's process before this one had (%s): %w", f.Key, err), keep.Release(f.Key))
			continue
		}
		found[agent] = l
	}
	return found, errs
}

var errDescriptor = errors.New("it has no descriptor")

func (l *legacy) takeMemory(f keeper.Found) error {
	if len(f.FDs) != 1 {
		return errDescriptor
	}
	l.memory = os.NewFile(uintptr(f.FDs[0]), "memory of boosted sessions")
	return json.Unmarshal(f.Value, &l.keptTrunk)
}

func (l *legacy) takeSession(f keeper.Found) error {
	if len(f.FDs) != 1 {
		return errDescriptor
	}
	file := os.NewFile(uintptr(f.FDs[0]), "connection to an end host")
	defer file.Close()
	var s trunk.Found
	if err := json.Unmarshal(f.Value, &s.Kept); err != nil {
		return err
	}
	c, err := net.FileConn(file)
	if err != nil {
		return err
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		c.Close()
		return errors.New("it is no connection of TCP")
	}
	s.Conn = tcp
	l.sessions = append(l.sessions, s)
	return nil
}

// end resets the connections of an agent that there is no more.
func (l *legacy) end(agent string, keep Keep) {
	if l.memory != nil {
		l.memory.Close()
	}
	_ = keep.Release(trunkKey(agent))
	for _, s := range l.sessions {
		s.Conn.SetLinger(0)
		s.Conn.Close()
		_ = keep.Release(sessionKey(agent, s.Open.Session))
	}
}

// inherit is what was found of an agent, once, if its memory has the size that trunks have now.
func (a *Agent) inherit(agent string) *legacy {
	a.mu.Lock()
	l := a.found[agent]
	delete(a.found, agent)
	a.mu.Unlock()
	if l != nil && (l.memory == nil || l.Bytes != a.Memory) {
		l.end(agent, a.Keep)
		return nil
	}
	return l
}

// disown ends what was found of agents that were not told of.
func (a *Agent) disown() {
	a.mu.Lock()
	found := a.found
	a.found = nil
	a.mu.Unlock()
	for agent, l := range found {
		l.end(agent, a.Keep)
	}
}

// remember gives a trunk what was found, and has the next process find it again.
func (p *peer) remember(c *trunk.Config) (err error) {
	a := p.a
	if a.Keep == nil {
		p.send, err = memory.Map(a.Memory)
		return err
	}
	c.Keep = &keeping{a.Keep, p.name, a.Memory}
	if l := a.inherit(p.name); l != nil {
		if p.send, err = memory.Of(l.memory, a.Memory); err == nil {
			c.Found, c.Peer, p.inherits = l.sessions, l.Peer, true
			return nil
		}
		a.Report(Event{Agent: p.name, Err: err})
		l.memory = nil // Of has closed it
		l.end(p.name, a.Keep)
	}
	if p.send, err = memory.Map(a.Memory); err != nil {
		return err
	}
	value, err := json.Marshal(keptTrunk{Bytes: a.Memory})
	if err == nil {
		err = p.hold(value)
	}
	return err
}

func (p *peer) hold(value []byte) (err error) {
	raw, err := p.send.File().SyscallConn()
	if err != nil {
		return err
	}
	fail := raw.Control(func(fd uintptr) { err = p.a.Keep.Hold(trunkKey(p.name), value, int(fd)) })
	return errors.Join(fail, err)
}
