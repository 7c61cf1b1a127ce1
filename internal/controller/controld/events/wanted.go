package events

import apiv1 "scaffold.dev/scaffold/internal/api/v1"

// Wanted is what a reader of the history asked for.
func Wanted(m *apiv1.WatchEventsRequest) func(*apiv1.Event) bool {
	return func(e *apiv1.Event) bool {
		return (!m.Audit || e.By != nil) && (m.By == "" || orderedBy(e, m.By)) && (m.Of == "" || about(e, m.Of)) && e.UnixMs >= m.SinceUnixMs
	}
}

// orderedBy reports whether somebody of that name ordered it, or whoever used the token.
func orderedBy(e *apiv1.Event, name string) bool {
	if e.By == nil {
		return false
	}
	return name == e.By.Name || name == e.By.Role+" "+e.By.Name || name == e.By.Role || name == e.By.User ||
		e.By.Uid != nil && name == "uid "+Number(*e.By.Uid) || e.Attrs["token"] == name
}

func about(e *apiv1.Event, name string) bool {
	return e.Subject == name || e.Attrs["host"] == name || e.Attrs["service"] == name || e.Attrs["name"] == name
}
