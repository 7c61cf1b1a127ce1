package api

import (
	"net/http"

	"scaffold.dev/scaffold/internal/api/v1/apiv1connect"
)

// FormerFlowHistory is what Local.GetFlowHistory was called in the version before: while a machine is upgraded, a command and
// the daemon that it asks may be of different ones. The version after this one goes without.
const FormerFlowHistory = "/scaffold.v1.Local/Biography"

// Former serves calls by the names that they had before.
func Former(h http.Handler) Mount {
	return Mount{Path: FormerFlowHistory, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := r.Clone(r.Context())
		now.URL.Path = apiv1connect.LocalGetFlowHistoryProcedure
		h.ServeHTTP(w, now)
	})}
}
