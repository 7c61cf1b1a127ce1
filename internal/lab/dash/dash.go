// Package dash is the web view of labs: one page with its script and style, embedded, which asks the lab's API
// from the browser and needs nothing from other places.
package dash

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed page
var files embed.FS

// policy lets the page load its own files and ask its own server, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Handler serves the page. There is nothing secret in it: what it shows, the API gives to who has the token.
func Handler() http.Handler {
	page, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // embedded: it is there
	}
	server := http.FileServerFS(page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		server.ServeHTTP(w, r)
	})
}
