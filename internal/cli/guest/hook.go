package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/syslog"
	"os"

	"github.com/spf13/cobra"

	"scaffold.dev/scaffold/internal/cli/command"
	"scaffold.dev/scaffold/internal/cli/exit"
	"scaffold.dev/scaffold/internal/cli/remote"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// Annotations of a container that is to be a guest.
const (
	guestAnnotation = "dev.scaffold.guest" // its name as a guest; "true": the short form of the container's; "false": none
	serveAnnotation = "dev.scaffold.serve" // as --serve
)

const aboutHook = `Hook is for container runtimes, which run it as a hook of the OCI runtime specification: createRuntime makes a
container a guest before its program begins, poststop ends that. The runtime writes the container's state to the
standard input. Which container: one with the annotation dev.scaffold.guest=NAME, and dev.scaffold.serve=SERVICE as
--serve of "scaffold guest add". NAME true is the short form of the container's id. Without the annotation, or with
false, nothing is done. "scaffold install host" puts the hook where podman looks for it.`

// A containerState is what a runtime tells its hooks.
type containerState struct {
	ID          string            `json:"id"`
	Status      string            `json:"status"`
	PID         int               `json:"pid"`
	Annotations map[string]string `json:"annotations"`
}

// maxState is far more than the annotations of any container.
const maxState = 1 << 20

func readState(r io.Reader) (*containerState, error) {
	s := &containerState{}
	limited := &io.LimitedReader{R: r, N: maxState}
	if err := json.NewDecoder(limited).Decode(s); err != nil { // and no further: who writes it may leave the pipe open
		return nil, noState(err, limited.N <= 0)
	}
	switch {
	case s.ID == "":
		return nil, errors.New("the container's state on the standard input has no id")
	case s.Status == "":
		return nil, errors.New("the container's state on the standard input has no status")
	case s.Status != stopped && s.PID <= 0:
		return nil, fmt.Errorf("container %.64s is %s and has no process: the hook is for createRuntime and poststop", s.ID, s.Status)
	}
	return s, nil
}

// noState says what is wrong with what is no state at all.
func noState(err error, tooLong bool) error {
	var mistyped *json.UnmarshalTypeError
	why := err.Error()
	switch {
	case tooLong && errors.Is(err, io.ErrUnexpectedEOF), tooLong && errors.Is(err, io.EOF):
		return errors.New("the container's state on the standard input is longer than 1 MiB")
	case errors.Is(err, io.EOF):
		return errors.New("the standard input is empty: want a container's state")
	case errors.Is(err, io.ErrUnexpectedEOF):
		why = "it ends too early"
	case errors.As(err, &mistyped) && mistyped.Field != "":
		why = fmt.Sprintf("%s is a JSON %s", mistyped.Field, mistyped.Value)
	case errors.As(err, &mistyped):
		why = "it is a JSON " + mistyped.Value
	}
	return fmt.Errorf("the standard input is no state of a container (OCI runtime specification): %s; want a JSON object with id, status, pid and annotations", why)
}

// stopped is the status of a container whose process has ended.
const stopped = "stopped"

// wanted reports whether the container is to be a guest.
func (s *containerState) wanted() bool {
	name, ok := s.Annotations[guestAnnotation]
	return ok && name != "false"
}

// guest is the container's name as a guest.
func (s *containerState) guest() string {
	name := s.Annotations[guestAnnotation]
	if name == "" || name == "true" {
		return s.ID[:min(len(s.ID), 12)]
	}
	return name
}

func (s *containerState) netns() string { return fmt.Sprintf("/proc/%d/ns/net", s.PID) }

func guestHook(f *remote.HostDaemons) *cobra.Command {
	return &cobra.Command{
		Use:   "hook",
		Short: "Make a container a guest, as a hook of its runtime",
		Long:  aboutHook,
		Example: `  podman run -d --annotation dev.scaffold.guest=web1 --annotation dev.scaffold.serve=web IMAGE
  crun state web1 | scaffold guest hook       # as the runtime does, by hand`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := runHook(f, cmd)
			if err != nil {
				toSyslog(err)
			}
			return err
		},
	}
}

func runHook(f *remote.HostDaemons, cmd *cobra.Command) error {
	s, err := command.Interruptible(cmd.Context(), func() (*containerState, error) { return readState(cmd.InOrStdin()) })
	if err != nil {
		return exit.Fail(exit.Usage, "runtimes write it: see docs/guests.md", err)
	}
	if !s.wanted() {
		return nil
	}
	client, node, err := f.Local()
	if err != nil {
		return err
	}
	h := &hook{s, client, node.Path}
	if s.Status != stopped {
		return h.add(cmd.Context())
	}
	err = h.remove(cmd.Context())
	if known := (*exit.Error)(nil); errors.As(err, &known) && known.Code == exit.Unreachable {
		return nil // the next daemon sees that the process is gone
	}
	return err
}

// toSyslog is for the operator: runtimes say that a hook failed, and not why.
func toSyslog(err error) {
	w, away := syslog.New(syslog.LOG_ERR|syslog.LOG_DAEMON, "scaffold-hook")
	if away != nil {
		return // no syslog, no journal: the exit code has to do
	}
	defer w.Close()
	w.Err(err.Error()) //nolint:errcheck // likewise
}

// A hook is one run.
type hook struct {
	*containerState
	client   apiv1connect.LocalClient
	endpoint string
}

// add makes the container a guest. The name may still be that of the one before a restart.
func (h *hook) add(ctx context.Context) error {
	if err := h.remove(ctx); err != nil {
		return err
	}
	req := &apiv1.AddGuestRequest{Name: h.guest(), Netns: h.netns(), Serve: h.Annotations[serveAnnotation]}
	_, err := addGuest(ctx, h.client, req, h.endpoint)
	return err
}

// remove ends the guest of that name if it is this container, or one whose process is gone. Another container's stays.
func (h *hook) remove(ctx context.Context) error {
	all, err := remote.Ask(ctx, h.client.ListGuests, &apiv1.ListGuestsRequest{}, h.endpoint, "")
	if err != nil {
		return err
	}
	for _, g := range all.Guests {
		if g.Name != h.guest() || g.Netns != h.netns() && !processGone(g.Netns) {
			continue
		}
		bounded, cancel := context.WithTimeout(ctx, guestTime)
		defer cancel()
		_, err := remote.Ask(bounded, h.client.RemoveGuest, &apiv1.RemoveGuestRequest{Name: g.Name}, h.endpoint, listGuests)
		var known *exit.Error
		if errors.As(err, &known) && known.Code == exit.NotFound {
			return nil // the daemon has noticed by itself
		}
		return err
	}
	return nil
}

// processGone reports whether the path is that of a process that is no more.
func processGone(netns string) bool {
	var pid int
	if n, _ := fmt.Sscanf(netns, "/proc/%d/ns/net", &pid); n != 1 {
		return false
	}
	_, err := os.Readlink(netns) // of a process that has ended and was not waited for there is none either
	return err != nil
}
