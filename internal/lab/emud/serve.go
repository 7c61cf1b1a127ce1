package emud

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	emudv1 "scaffold.dev/scaffold/internal/lab/emud/v1"
	"scaffold.dev/scaffold/internal/lab/emud/v1/emudv1connect"
	"scaffold.dev/scaffold/internal/linux/private"
)

// maxMessage bounds one message of a question; recordings come in many.
const maxMessage = 16 << 20

// A server answers what v1/emulator.proto says can be asked of the engine.
type server struct {
	*engine
	quit context.CancelFunc
}

var _ emudv1connect.EmulatorHandler = server{}

func (e server) handler() http.Handler {
	_, h := emudv1connect.NewEmulatorHandler(e, connect.WithReadMaxBytes(maxMessage))
	return h
}

// serve answers until ctx ends or somebody asks for the end.
func (e *engine) serve(ctx context.Context, socket string) error {
	os.Remove(socket)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	if err := os.Chmod(socket, 0o600); err != nil { // whatever the umask is
		listener.Close()
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	return api.Serve(ctx, server{e, cancel}.handler(), private.Listener(listener))
}

// Shutdown ends the engine, which answers first.
func (e server) Shutdown(context.Context, *emudv1.ShutdownRequest) (*emudv1.ShutdownResponse, error) {
	e.quit()
	return &emudv1.ShutdownResponse{}, nil
}

func notFound(format string, args ...any) error {
	return connect.NewError(connect.CodeNotFound, fmt.Errorf(format, args...))
}

// bad makes an error one of who asks.
func bad(err error) error {
	if err == nil {
		return nil
	}
	return connect.NewError(connect.CodeInvalidArgument, err)
}

// errEnding ends streams that would last longer than the engine. Who went away by himself does not hear it.
var errEnding = connect.NewError(connect.CodeUnavailable, errors.New("it has ended"))

// text is what a message may carry of words that come from elsewhere: programs of users say what they like.
func text(s string) string { return strings.ToValidUTF8(s, "\ufffd") }

func (e *engine) find(name string) (*router, error) {
	if r := e.routers[name]; r != nil {
		return r, nil
	}
	return nil, notFound("no router %q inside the engine, which has %d", name, len(e.order))
}

func (e *engine) linkAt(number int32) (*link, error) {
	if number < 0 || int(number) >= len(e.links) {
		return nil, notFound("no link %d; there are %d, numbered from 0", number, len(e.links))
	}
	return e.links[number], nil
}
