package api

import "net/http"

// A Mount is a service that is served beside others, as the generated constructors of handlers return it.
type Mount struct {
	Path    string
	Handler http.Handler
}
