package events

import apiv1 "scaffold.dev/scaffold/internal/api/v1"

// ActorText is an actor in a few words.
func ActorText(a *apiv1.Actor) string {
	text := a.Role
	if a.Name != "" {
		text += " " + a.Name
	}
	if a.User != "" {
		text += " (its user " + a.User + ")"
	}
	if a.Address != "" {
		text += " at " + a.Address
	}
	if a.Via != "" {
		text += " by controller " + a.Via
	}
	return text
}
