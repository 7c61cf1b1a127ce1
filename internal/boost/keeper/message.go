package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// A message is one packet between a keeper and its worker; descriptors go with it.
type message struct {
	Do    verb   `json:"do"`
	Key   string `json:"key,omitempty"`
	Value []byte `json:"value,omitempty"`
	fds   []int
}

// A verb is what a message says.
type verb string

const (
	// Of the worker.
	hold    verb = "hold"    // keep this under the key, in place of what was there
	note    verb = "note"    // the same, with the descriptors that are there
	release verb = "release" // nobody needs it any more
	ready   verb = "ready"   // it does its work now
	failed  verb = "failed"  // it ends, for this reason

	// Of the keeper.
	found verb = "found" // a worker before has left this
	begin verb = "begin" // that is all of it
	end   verb = "end"   // there is to be no worker any more

	// Of both: a worker asks, and its keeper answers.
	beat verb = "beat"
)

const (
	longest = 64 << 10 // of a message
	mostFDs = 4
)

// A wire is one end of the pair of sockets.
type wire struct{ *net.UnixConn }

// pair makes both ends: one for this process, one to be inherited.
func pair() (own wire, other *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return own, nil, fmt.Errorf("sockets between keeper and worker: %w", err)
	}
	other = os.NewFile(uintptr(fds[1]), "keeper")
	if own, err = wireOf(fds[0]); err != nil {
		other.Close()
	}
	return own, other, err
}

// wireOf is the wire that has this descriptor, which it takes.
func wireOf(fd int) (wire, error) {
	f := os.NewFile(uintptr(fd), "keeper")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return wire{}, fmt.Errorf("the socket between keeper and worker: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return wire{}, errors.New("the socket between keeper and worker is none of a Unix domain")
	}
	return wire{u}, nil
}

// say sends a message; of descriptors the other end gets its own.
func (w wire) say(m message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(b) > longest || len(m.fds) > mostFDs {
		return fmt.Errorf("message %q of %d bytes with %d descriptors: at most are %d and %d", m.Do, len(b), len(m.fds), longest, mostFDs)
	}
	var rights []byte
	if len(m.fds) > 0 {
		rights = unix.UnixRights(m.fds...)
	}
	_, _, err = w.WriteMsgUnix(b, rights, nil)
	return err
}

// errLost says that descriptors did not come: this process has as many as it may.
var errLost = errors.New("descriptors did not come: this process may have no more (ulimit -n)")

// hear waits for a message. io.EOF: the other end is gone. With errLost the message has come, without its descriptors.
func (w wire) hear(b []byte) (m message, err error) {
	rights := make([]byte, unix.CmsgSpace(mostFDs*4))
	n, space, flags, _, err := w.ReadMsgUnix(b, rights)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil {
		return m, err
	}
	if m.fds, err = descriptors(rights[:space]); err != nil {
		return m, err
	}
	if flags&unix.MSG_CTRUNC != 0 {
		closeAll(m.fds)
		m.fds, err = nil, errLost
	}
	if wrong := json.Unmarshal(b[:n], &m); wrong != nil || flags&unix.MSG_TRUNC != 0 {
		closeAll(m.fds)
		return m, fmt.Errorf("a message of %d bytes between keeper and worker: %w", n, errors.Join(wrong, err))
	}
	return m, err
}

func descriptors(rights []byte) (fds []int, err error) {
	all, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	for _, one := range all {
		more, err := unix.ParseUnixRights(&one)
		if err != nil {
			closeAll(fds)
			return nil, err
		}
		fds = append(fds, more...)
	}
	return fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}
