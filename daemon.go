package scaffold

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"sync"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// DefaultDaemon is where the host daemon is asked when neither Host.Daemon nor $SCAFFOLD_API says else.
const DefaultDaemon = "unix:/run/scaffold/hostd.sock"

// The errors that a program may want to tell apart. They are returned wrapped: ask with [errors.Is]. A
// host daemon that is too old for a call gives [errors.ErrUnsupported].
var (
	// ErrUnknownService: no service has the name.
	ErrUnknownService = errors.New("no such service")
	// ErrNoDaemon: no host daemon answers. Connections that are there go on without it.
	ErrNoDaemon = errors.New("no host daemon answers")
	// ErrNoFlow: the connection is none of Scaffold's, as when a program listens on other addresses too,
	// or it has ended.
	ErrNoFlow = errors.New("not a connection of a service")
	// ErrRefused: the daemon understood and will not, as when a flow is to move to an interface that is down.
	ErrRefused = errors.New("refused")
)

// daemon is a host's daemon as long as somebody calls it. All who do meanwhile share its connection: a program that
// serves has one open, and need not wait for another with each Identify.
type daemon struct {
	http     *http.Client
	endpoint string
	admin    apiv1connect.AdminClient
	local    apiv1connect.LocalClient
	users    int // under called.mu
}

// called are the daemons that are called now, by endpoint.
var called = struct {
	mu  sync.Mutex
	all map[string]*daemon
}{all: map[string]*daemon{}}

func (h *Host) endpoint() string {
	return cmp.Or(h.Daemon, os.Getenv("SCAFFOLD_API"), DefaultDaemon)
}

func (h *Host) dial() (*daemon, error) {
	called.mu.Lock()
	defer called.mu.Unlock()
	at := h.endpoint()
	d := called.all[at]
	if d == nil {
		client, base, err := api.Dial(at)
		if err != nil {
			return nil, err
		}
		d = &daemon{http: client, endpoint: at, admin: apiv1connect.NewAdminClient(client, base), local: apiv1connect.NewLocalClient(client, base)}
		called.all[at] = d
	}
	d.users++
	return d, nil
}

// Close is called once by each who dialed. The last one ends the connection.
func (d *daemon) Close() {
	called.mu.Lock()
	defer called.mu.Unlock()
	if d.users--; d.users == 0 {
		delete(called.all, d.endpoint)
		d.http.CloseIdleConnections()
	}
}

// explain says what an error of a call means to a program; what is missing in a daemon that does not
// know the call.
func (d *daemon) explain(what string, err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return &daemonError{fmt.Sprintf("the host daemon at %s is for root and the group scaffold: add this program's user to that group (usermod -aG scaffold USER)", d.endpoint), ErrNoDaemon, err}
	}
	switch connect.CodeOf(err) {
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded:
		return &daemonError{fmt.Sprintf("no host daemon answers at %s: is hostd running there?", d.endpoint), ErrNoDaemon, err}
	case connect.CodeUnimplemented:
		return &daemonError{fmt.Sprintf("the host daemon at %s knows nothing of %s: it is older than this program, run a hostd of its version or a later one", d.endpoint, what), errors.ErrUnsupported, err}
	case connect.CodeNotFound:
		return &daemonError{message(err), ErrNoFlow, err}
	case connect.CodeFailedPrecondition, connect.CodeInvalidArgument, connect.CodePermissionDenied:
		return &daemonError{message(err), ErrRefused, err}
	}
	return fmt.Errorf("ask the host daemon at %s: %w", d.endpoint, err)
}

// message is what the daemon said, without Connect's code before it.
func message(err error) string {
	var remote *connect.Error
	if errors.As(err, &remote) {
		return remote.Message()
	}
	return err.Error()
}

// daemonError says in words what went wrong and is, to errors.Is, its kind and its cause.
type daemonError struct {
	text        string
	kind, cause error
}

func (e *daemonError) Error() string   { return e.text }
func (e *daemonError) Unwrap() []error { return []error{e.kind, e.cause} }
