package switchd

import (
	"context"
	"log/slog"
	"time"

	"connectrpc.com/connect"

	"scaffold.dev/scaffold/internal/api"
	apiv1 "scaffold.dev/scaffold/internal/api/v1"
	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// How many notes may wait for the controller, and how long one may take.
const (
	notesMost   = 1024
	noteTimeout = 5 * time.Second
)

// notes carry what happened to the controller's history, in order; those that find no room are in the log alone.
type notes struct {
	log   *slog.Logger
	queue chan *apiv1.Event
}

func newNotes(log *slog.Logger) *notes {
	return &notes{log: log, queue: make(chan *apiv1.Event, notesMost)}
}

// event implements chronicle.
func (n *notes) event(kind, subject, text string, attrs ...string) {
	e := &apiv1.Event{Kind: kind, Subject: subject, Text: text, Attrs: map[string]string{}}
	for i := 0; i+1 < len(attrs); i += 2 {
		e.Attrs[attrs[i]] = attrs[i+1]
	}
	n.log.Debug(text, "event", kind, "subject", subject) // the controller logs it
	select {
	case n.queue <- e:
	default:
	}
}

// run delivers notes until ctx ends.
func (n *notes) run(ctx context.Context, endpoint string) {
	client, base, err := api.Dial(endpoint)
	if err != nil {
		return // Config.Check has read it
	}
	defer client.CloseIdleConnections()
	agent := apiv1connect.NewAgentClient(client, base)
	for {
		select {
		case e := <-n.queue:
			n.deliver(ctx, agent, e)
		case <-ctx.Done():
			return
		}
	}
}

// deliver tries until the controller has taken or refused the note.
func (n *notes) deliver(ctx context.Context, agent apiv1connect.AgentClient, e *apiv1.Event) {
	for ctx.Err() == nil {
		once, cancel := context.WithTimeout(ctx, noteTimeout)
		_, err := agent.Note(once, connect.NewRequest(e))
		cancel()
		if code := connect.CodeOf(err); err == nil || code != connect.CodeUnavailable && code != connect.CodeDeadlineExceeded {
			return
		}
		select {
		case <-time.After(retryFirst):
		case <-ctx.Done():
		}
	}
}
