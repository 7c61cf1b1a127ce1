package api

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"scaffold.dev/scaffold/internal/linux/private"
)

// ErrRunning says that another daemon does already what this one is to do.
var ErrRunning = errors.New("another one runs")

// running is ErrRunning in words that fit the place.
type running string

func (r running) Error() string        { return string(r) }
func (r running) Is(target error) bool { return target == ErrRunning }

// Alone makes this process the only daemon of its kind in the network namespace of the calling thread,
// until it is closed or the process ends, however it does. Two would undo each other's routes.
func Alone(daemon string) (io.Closer, error) {
	busy := running(daemon + ": another one runs in this network namespace: stop that first")
	place, err := private.Hold(daemon)
	if errors.Is(err, private.ErrHeld) {
		return nil, busy
	}
	if err != nil {
		return nil, fmt.Errorf("%s: take its place in this network namespace: %w", daemon, err)
	}
	former, err := formerName(daemon)
	if err != nil {
		place.Close()
		return nil, busy
	}
	return &sole{place, former}, nil
}

// formerName takes the name in the abstract by which daemons of before, or with another /run, know each other. It is
// an error where one of root's has it. Any user can bind it: whoever else has it is no daemon, and in nobody's way.
func formerName(daemon string) (io.Closer, error) {
	name := "@scaffold-" + daemon // such names belong to a network namespace
	l, err := net.Listen("unix", name)
	if err == nil {
		return l, nil
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		return nil, nil
	}
	c, err := private.Dial(name)
	if err != nil {
		return nil, nil
	}
	c.Close()
	return nil, running(name)
}

// sole is the place of a daemon and its former name, which it may not have got.
type sole struct{ place, former io.Closer }

// Close implements io.Closer.
func (s *sole) Close() error {
	if s.former != nil {
		s.former.Close()
	}
	return s.place.Close()
}
