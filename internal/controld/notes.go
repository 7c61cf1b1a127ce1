package controld

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	apiv1 "scaffold.dev/scaffold/internal/api/v1"
)

// How many notes of switches and modules there may be at once, and how many more each second: a network of
// switches may come all at once.
const (
	noteBurst     = 1000
	notesASecond  = 100
	maxNoteSuffix = 32
)

var notedEvents = []string{"switch.", "module."}

// Note takes what whoever drives the switches tells of them, and of its modules, into the history.
func (a *agentAPI) Note(ctx context.Context, req *connect.Request[apiv1.Event]) (*connect.Response[apiv1.NoteResponse], error) {
	if err := checkNote(req.Msg); err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	return get(ctx, a.n, func() (*apiv1.NoteResponse, error) {
		if !a.n.notes.take(time.Now(), noteBurst, notesASecond) {
			a.n.metrics.refusedEvents.Inc()
			return nil, connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("more than %d notes a second", notesASecond))
		}
		a.n.noted(req.Msg)
		return new(apiv1.NoteResponse), nil
	})
}

func checkNote(e *apiv1.Event) error {
	known := slices.ContainsFunc(notedEvents, func(p string) bool { return strings.HasPrefix(e.Kind, p) })
	if _, what, _ := strings.Cut(e.Kind, "."); !known || len(what) > maxNoteSuffix || printable(e.Kind) != e.Kind {
		return fmt.Errorf("event of kind %.80q: want one of switches or modules", e.Kind)
	}
	if len(e.Subject) > maxText || len(e.Attrs) > maxAttrs {
		return fmt.Errorf("event %s with %d attributes and a subject of %d bytes: at most %d and %d", e.Kind, len(e.Attrs), len(e.Subject), maxAttrs, maxText)
	}
	return nil
}

func (n *network) noted(e *apiv1.Event) {
	var attrs []string
	for _, k := range slices.Sorted(maps.Keys(e.Attrs)) {
		if len(k) <= maxText {
			attrs = append(attrs, printable(k), printable(shortened(e.Attrs[k])))
		}
	}
	if n.notes.skipped > 0 {
		attrs = append(attrs, "not_told", uitoa(n.notes.skipped))
		n.notes.skipped = 0
	}
	n.event(e.Kind, printable(e.Subject), printable(shortened(e.Text)), attrs...)
}
