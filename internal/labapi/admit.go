package labapi

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"strings"
)

// maxBody bounds what a request may send: a lab file, a result to be drawn, the standard input of a command.
const maxBody = 64 << 20

// NewToken makes a token that nobody guesses.
func NewToken() string { return rand.Text() }

// admit looks for the token. A page of another site cannot know it, whatever name it gives to this address.
func (s *Server) admit(r *http.Request) error {
	if s.cfg.Token == "" {
		return nil
	}
	shown, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case !ok:
		return refuse(http.StatusUnauthorized, "a token is needed, as the header \"Authorization: Bearer TOKEN\"; scaffold lab serve printed it or wrote it to its --token-file")
	case subtle.ConstantTimeCompare([]byte(shown), []byte(s.cfg.Token)) != 1:
		return refuse(http.StatusUnauthorized, "this is not the token of this server; scaffold lab serve printed it or wrote it to its --token-file")
	}
	return nil
}
