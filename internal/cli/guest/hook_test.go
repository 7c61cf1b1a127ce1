package guest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	"scaffold.dev/scaffold/internal/cli/command/commandtest"
	"scaffold.dev/scaffold/internal/cli/exit"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// A hostOfGuests is a host's daemon that knows guests and nothing else.
type hostOfGuests struct {
	apiv1connect.UnimplementedLocalHandler
	guests []*apiv1.Guest
}

func (h *hostOfGuests) ListGuests(context.Context, *connect.Request[apiv1.ListGuestsRequest]) (*connect.Response[apiv1.ListGuestsResponse], error) {
	return connect.NewResponse(&apiv1.ListGuestsResponse{Guests: h.guests}), nil
}

func (h *hostOfGuests) AddGuest(_ context.Context, r *connect.Request[apiv1.AddGuestRequest]) (*connect.Response[apiv1.Guest], error) {
	switch r.Msg.Netns {
	case "/proc/999999/ns/net":
		return nil, connect.NewError(connect.CodeNotFound, errors.New("no process 999999"))
	case "/proc/1/ns/net":
		return nil, connect.NewError(connect.CodePermissionDenied, errors.New("hostd may not enter the namespace of process 1"))
	}
	g := &apiv1.Guest{Name: r.Msg.Name, Netns: r.Msg.Netns, Serve: r.Msg.Serve}
	if slices.ContainsFunc(h.guests, func(o *apiv1.Guest) bool { return o.Name == g.Name }) {
		return nil, connect.NewError(connect.CodeAlreadyExists, errors.New("there is a guest of that name already"))
	}
	h.guests = append(h.guests, g)
	return connect.NewResponse(g), nil
}

func (h *hostOfGuests) RemoveGuest(_ context.Context, r *connect.Request[apiv1.RemoveGuestRequest]) (*connect.Response[apiv1.RemoveGuestResponse], error) {
	h.guests = slices.DeleteFunc(h.guests, func(o *apiv1.Guest) bool { return o.Name == r.Msg.Name })
	return connect.NewResponse(&apiv1.RemoveGuestResponse{}), nil
}

// says is what the daemon knows, in one line.
func (h *hostOfGuests) says() string {
	var all []string
	for _, g := range h.guests {
		all = append(all, g.Name+" "+g.Netns+" "+g.Serve)
	}
	return strings.TrimSpace(strings.Join(all, ", "))
}

// serve is the command's way to it.
func (h *hostOfGuests) serve(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cli") // a socket's path has 107 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewLocalHandler(h))
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- api.Serve(ctx, mux, l) }()
	t.Cleanup(func() { stop(); <-served })
	return "unix:" + l.Addr().String()
}

// ended is the number of a process that is no more.
func ended(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// A runtime runs the hook with the container's state: before the container's program begins, and after its end.
func TestAHookMakesContainersGuests(t *testing.T) {
	here, gone := os.Getpid(), ended(t)
	netns := func(pid int) string { return fmt.Sprintf("/proc/%d/ns/net", pid) }
	const id = "4f2c1d0e9b8a77665544332211"
	state := func(status string, pid int, annotations string) string {
		return fmt.Sprintf(`{"ociVersion":"1.0","id":%q,"status":%q,"pid":%d,"bundle":"/b","annotations":{%s}}`, id, status, pid, annotations)
	}
	const web = `"dev.scaffold.guest":"web1","dev.scaffold.serve":"web"`
	for name, c := range map[string]struct {
		before []*apiv1.Guest
		state  string
		after  string
		code   exit.Code
	}{
		"a container":                {state: state("created", here, web), after: "web1 " + netns(here) + " web"},
		"one without a name":         {state: state("creating", here, `"dev.scaffold.guest":"true"`), after: "4f2c1d0e9b8a " + netns(here)},
		"one without the annotation": {state: state("running", here, `"dev.scaffold.serve":"web"`)},
		"one that shall not":         {state: state("created", here, `"dev.scaffold.guest":"false"`)},
		"the end of one without it":  {before: []*apiv1.Guest{{Name: "4f2c1d0e9b8a", Netns: netns(gone)}}, state: state("stopped", 0, ""), after: "4f2c1d0e9b8a " + netns(gone)},
		"a restart": {before: []*apiv1.Guest{{Name: "web1", Netns: netns(gone)}}, state: state("created", here, web),
			after: "web1 " + netns(here) + " web"},
		"the name of another container": {before: []*apiv1.Guest{{Name: "web1", Netns: netns(os.Getppid())}}, state: state("created", here, web),
			after: "web1 " + netns(os.Getppid()), code: exit.Refused},
		"its end":                        {before: []*apiv1.Guest{{Name: "web1", Netns: netns(gone)}, {Name: "db"}}, state: state("stopped", 0, web), after: "db"},
		"its end, told by its process":   {before: []*apiv1.Guest{{Name: "web1", Netns: netns(here)}}, state: state("stopped", here, web)},
		"its end, and the daemon knew":   {state: state("stopped", 0, web)},
		"its end, another one has it":    {before: []*apiv1.Guest{{Name: "web1", Netns: netns(here)}}, state: state("stopped", 0, web), after: "web1 " + netns(here)},
		"its end, a file of that name":   {before: []*apiv1.Guest{{Name: "web1", Netns: "/run/netns/web1"}}, state: state("stopped", 0, web), after: "web1 /run/netns/web1"},
		"no state":                       {code: exit.Usage},
		"half a state":                   {state: `{"id":`, code: exit.Usage},
		"no id":                          {state: `{"status":"created","pid":1}`, code: exit.Usage},
		"no status":                      {state: `{"id":"x","pid":1}`, code: exit.Usage},
		"no process":                     {state: state("created", 0, web), code: exit.Usage},
		"a number that is none":          {state: `{"id":"x","status":"created","pid":"1"}`, code: exit.Usage},
		"a stage without a process, yet": {state: state("creating", -1, web), code: exit.Usage},
	} {
		h := &hostOfGuests{guests: c.before}
		code, _, said := commandtest.Run(Command(), c.state, "guest", "hook", "--api", h.serve(t))
		if h.says() != c.after || code != int(c.code) {
			t.Errorf("%s: guests %q, exit code %d (%s); want %q and %d", name, h.says(), code, said, c.after, c.code)
		}
	}
}

// What is no container's state is said in words of the specification.
func TestAHookSaysWhatIsNoState(t *testing.T) {
	for name, c := range map[string]struct{ state, says string }{
		"nothing":      {"", "the standard input is empty"},
		"white space":  {" \n", "the standard input is empty"},
		"too much":     {`{"id":"` + strings.Repeat("x", maxState) + `"}`, "is longer than 1 MiB"},
		"blanks alone": {strings.Repeat(" ", maxState+1), "is longer than 1 MiB"},
		"half":         {`{"id":`, "it ends too early"},
		"a list":       {`[]`, "it is a JSON array"},
		"a text":       {`"x"`, "it is a JSON string"},
		"a wrong pid":  {`{"id":"x","pid":"1"}`, "pid is a JSON string"},
		"no JSON":      {`hello`, "invalid character"},
	} {
		_, err := readState(strings.NewReader(c.state))
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// Where no daemon runs a container that wants to be a guest does not start, and one that ends is not held up.
func TestAHookWithoutADaemon(t *testing.T) {
	for status, want := range map[string]exit.Code{"created": exit.Unreachable, "stopped": exit.OK} {
		state := fmt.Sprintf(`{"id":"x","status":%q,"pid":%d,"annotations":{"dev.scaffold.guest":"true"}}`, status, os.Getpid())
		code, _, said := commandtest.Run(Command(), state, "guest", "hook", "--api", "unix:"+filepath.Join(t.TempDir(), "none"))
		if code != int(want) {
			t.Errorf("%s: exit code %d (%s), want %d", status, code, said, want)
		}
	}
}

// A container that does not run, a process that is not there, and one that the daemon may not look into are three things.
func TestAGuestByItsProcess(t *testing.T) {
	for pid, c := range map[string]struct {
		code exit.Code
		says string
		hint string
	}{
		"0":      {exit.Usage, "--pid 0: want the number of a process", "not running"},
		"-1":     {exit.Usage, "--pid -1: want the number of a process", "not running"},
		"999999": {exit.NotFound, "no process 999999", ""},
		"1":      {exit.Missing, "hostd may not enter the namespace of process 1", "CAP_SYS_PTRACE"},
	} {
		code, _, got := commandtest.Run(Command(), "", "guest", "add", "db", "--pid", pid, "--api", (&hostOfGuests{}).serve(t))
		if code != int(c.code) || !strings.Contains(got, c.says) || !strings.Contains(got, c.hint) || c.hint == "" && strings.Contains(got, "hint:") {
			t.Errorf("--pid %s: exit code %d, %q; want %d and %q, %q", pid, code, got, c.code, c.says, c.hint)
		}
	}
}

func TestTheEndOfAGuestIsJSONForPrograms(t *testing.T) {
	h := &hostOfGuests{guests: []*apiv1.Guest{{Name: "db"}}}
	if code, out, said := commandtest.Run(Command(), "", "guest", "rm", "db", "-o", "json", "--api", h.serve(t)); code != 0 || out != "{}\n" {
		t.Errorf("exit code %d, %q %q; want {}", code, out, said)
	}
}
