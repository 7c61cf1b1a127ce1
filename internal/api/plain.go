package api

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"syscall"

	"connectrpc.com/connect"
)

// Plainly is for people why a call came to nothing. The layers below say which of their calls on which socket failed how;
// of the causes that happen every day that is noise.
func Plainly(err error) string {
	var dial *net.OpError
	switch dialing := errors.As(err, &dial) && dial.Op == "dial"; {
	case connect.IsWireError(err): // somebody answered
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route leads there"
	case dialing && dial.Timeout():
		return "nothing came back from that address in time"
	case TimedOut(err):
		return "it has not answered in time"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed):
		return "the connection broke off"
	}
	var said *connect.Error
	switch {
	case TimedOut(err):
		return "it has not answered in time"
	case errors.As(err, &said) && said.Message() != "":
		return said.Message()
	}
	return err.Error()
}

// TimedOut reports whether the time of a call was over, as this end or the other one saw it: the other one knows it, too.
func TimedOut(err error) bool {
	var said *connect.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &said) && said.Code() == connect.CodeDeadlineExceeded && said.Message() == context.DeadlineExceeded.Error()
}
