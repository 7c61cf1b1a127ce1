package api

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
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
	l, err := net.Listen("unix", "@scaffold-"+daemon) // such names belong to a network namespace
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, running(daemon + ": another one runs in this network namespace: stop that first")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: take its place in this network namespace: %w", daemon, err)
	}
	return l, nil
}
