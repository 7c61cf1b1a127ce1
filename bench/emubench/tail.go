package emubench

import (
	"bytes"
	"strings"
	"sync"
)

// A tail keeps what a program says, for the error if it fails.
type tail struct {
	mu   sync.Mutex
	said bytes.Buffer
}

// Write implements io.Writer.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said.Write(b)
}

// String is the last line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return lastLine(t.said.Bytes())
}

// lastLine is the end of what a program said.
func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}
