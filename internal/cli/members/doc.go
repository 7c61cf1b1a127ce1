// Package members is who belongs to a network, as its administrators see it: `scaffold token`, `admin`, `host`, `router` and
// `controller`.
package members
