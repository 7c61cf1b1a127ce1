package flow

import (
	"slices"

	"scaffold.dev/scaffold/sid"
)

// answerPorts is how many ports are known from which a client's socket, or a server's flow, was answered, where they are
// others than were asked, docs/protocol.md §3.4.
const answerPorts = 16

// An answerPort leads to the flow of the port that was asked.
type answerPort struct {
	from uint16
	conn *Conn
}

// ports are those of a client's socket and service, or of a server's flow; the oldest goes when there are too many.
type ports struct {
	at   [answerPorts]answerPort
	next int
}

// anyPort is the tuple without the port that was asked.
func (t tuple) anyPort() tuple {
	t.rport = 0
	return t
}

// noteAnswer: the client's peer has answered from the port.
func (m *Machine) noteAnswer(c *Conn, from uint16) {
	if c.Role == Client && c.proto == sid.UDP && c.rport != 0 && from != c.rport {
		m.notePort(c.anyPort(), c, from)
	}
}

// noteOwn: a program of this host answers from the port. The last one stands in the flow itself.
func (m *Machine) noteOwn(c *Conn, from uint16) {
	if c.proto != sid.UDP || c.ports[1] == from {
		return
	}
	if c.ports[1] != c.ports[0] {
		m.notePort(c.tuple, c, c.ports[1])
	}
	c.ports[1] = from
}

func (m *Machine) notePort(t tuple, c *Conn, from uint16) {
	if from == 0 {
		return
	}
	all := m.answerPorts[t]
	if all == nil {
		all = &ports{}
		m.answerPorts[t] = all
	}
	for i := range all.at {
		if all.at[i].from == from {
			all.at[i].conn = c
			return
		}
	}
	all.at[all.next%answerPorts] = answerPort{from, c}
	all.next++
}

// answersFrom reports whether a server's flow was answered from the port.
func (m *Machine) answersFrom(c *Conn, port uint16) bool {
	all := m.answerPorts[c.tuple]
	return all != nil && slices.Contains(all.at[:], answerPort{port, c})
}

// forgetAnswers: who answered is the flow's peer no more.
func (m *Machine) forgetAnswers(c *Conn) {
	all := m.answerPorts[c.anyPort()]
	if all == nil {
		return
	}
	for i := range all.at {
		if all.at[i].conn == c {
			all.at[i] = answerPort{}
		}
	}
}

// clientFlow is the flow of what a client's socket sends: its port's own, or that whose peer answered from the port. A
// flow of its own that nobody has answered yet comes last: the program writes to who has spoken to it. One without a
// port is of the version before, and has them all.
func (m *Machine) clientFlow(t tuple) *Conn {
	own := m.byTuple[t]
	if t.proto != sid.UDP || own != nil && (own.state == Bound || own.policy.Datagrams == Unbound) {
		return own
	}
	if c := m.answeredFrom(t); c != nil {
		return c
	}
	if own == nil {
		return m.byTuple[t.anyPort()]
	}
	return own
}

func (m *Machine) answeredFrom(t tuple) *Conn {
	all := m.answerPorts[t.anyPort()]
	if all == nil || t.rport == 0 {
		return nil
	}
	for _, p := range all.at {
		if p.from == t.rport && p.conn.state == Bound && m.byTuple[p.conn.tuple] == p.conn {
			return p.conn
		}
	}
	return nil
}
