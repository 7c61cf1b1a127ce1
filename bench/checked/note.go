package checked

import (
	"encoding/json"
	"io"
	"sync"
)

// Kinds of notes.
const (
	Listening = "listening" // a server's sockets are there
	Began     = "began"     // a flow has both its ends
	Refused   = "refused"   // a client's connect failed
	Progress  = "progress"  // what arrived since the last note
	Gap       = "gap"       // nothing arrived From..At
	Wrong     = "wrong"     // a byte was not what was sent: Err says which
	Ended     = "ended"     // Err is empty where both ends had sent all they wanted
)

// A Note is one line of what a program tells.
type Note struct {
	Kind   string `json:"kind"`
	At     int64  `json:"at"` // CLOCK_MONOTONIC, ns
	Node   string `json:"node,omitempty"`
	Flow   uint64 `json:"flow,omitempty"`
	Proto  string `json:"proto,omitempty"` // "tcp", "udp"
	Client bool   `json:"client,omitempty"`
	Local  string `json:"local,omitempty"`
	Peer   string `json:"peer,omitempty"`
	Server string `json:"server,omitempty"` // udp: who answered last
	Err    string `json:"err,omitempty"`

	Received uint64 `json:"received,omitempty"` // bytes; datagrams of a udp flow
	Sent     uint64 `json:"sent,omitempty"`
	Last     int64  `json:"last,omitempty"` // when something arrived last
	From     int64  `json:"from,omitempty"` // of a gap

	Lost       uint64 `json:"lost,omitempty"` // udp: not answered though a later one was; at the end, never answered
	Duplicates uint64 `json:"duplicates,omitempty"`
	Failures   uint64 `json:"failures,omitempty"` // udp: errors of send and receive
}

// A Log writes notes, one JSON object a line.
type Log struct {
	mu   sync.Mutex
	enc  *json.Encoder
	node string
}

// NewLog writes to w as the program of the node.
func NewLog(w io.Writer, node string) *Log { return &Log{enc: json.NewEncoder(w), node: node} }

func (l *Log) note(n Note) {
	n.Node = l.node
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enc.Encode(n) //nolint:errcheck // whoever reads it went away, and so will we
}
